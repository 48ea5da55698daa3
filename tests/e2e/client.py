"""client.py: a small client of efr's wire for tests that need more than the command `efr` shows.

Owns: one connection, requests, streams. Must not know: what a test checks.
"""
import json
import os
import socket
import uuid


class Client:
    def __init__(self, path, limit=60, **hello):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(limit)
        self.sock.connect(path)
        self.file = self.sock.makefile("rb")
        self.next = 0
        self.items = []
        self.request("hello", {"protocol": 1, "origin": "cli", "pid": os.getpid(), **hello})

    def close(self):
        """Ends the connection."""
        self.file.close()
        self.sock.close()

    def start(self, method, params):
        """Sends a request and returns its id."""
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.sock.sendall(json.dumps(message).encode() + b"\n")
        return self.next

    def read(self):
        """The next message of the server; raises ConnectionError at its end."""
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the server closed the connection")
        return json.loads(line)

    def request(self, method, params):
        """One request and its answer. Stream items that arrive meanwhile are kept in self.items."""
        wanted = self.start(method, params)
        while True:
            message = self.read()
            if message.get("method") == "stream":
                self.items.append(message["params"]["item"])
            elif message.get("id") == wanted:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]

    def send(self, text, pwd, conversation=None, **settings):
        """prompt.send; returns its result."""
        params = {"command_id": str(uuid.uuid4()), "text": text, "context": {"pwd": pwd}}
        if conversation:
            params["conversation_id"] = conversation
        else:
            params["new_conversation"] = True
        if settings:
            params["settings"] = settings
        return self.request("prompt.send", params)

    def stream(self):
        """Stream items, one after another, without end."""
        while True:
            while self.items:
                yield self.items.pop(0)
            message = self.read()
            if message.get("method") == "stream":
                yield message["params"]["item"]
            elif "error" in message:
                raise RuntimeError(message["error"])
