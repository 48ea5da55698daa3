#!/usr/bin/env python3
"""openai_server.py: a loopback chat-completions server with faults, for tests of efr.

usage: openai_server.py PLAN.json LOG [--tls CERT KEY]

Owns: what a server like Ollama or llama.cpp does on the wire, and what goes wrong there. It prints
`port N` and serves until its standard input ends. PLAN.json is a list; each POST takes the next
entry (the last one repeats):
  text, calls [{name, arguments (text), id?}], reasoning, usage (false = none), finish
  chunk: bytes of one write (cuts inside characters and lines)    delay: seconds between writes
  fault: one of stall, reset, reset_early, garbage, cut, no_done, drop_after_done, keep_open
  status, headers {}, body: an answer that is no stream
Each request is one JSON line in LOG: method, path, headers, body (as text).
"""
import json
import socket
import ssl
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1]) as source:
    plan = json.load(source)
log = open(sys.argv[2], "a", buffering=1)
lock = threading.Lock()
over = threading.Event()
taken = 0


def next_entry():
    global taken
    with lock:
        entry = plan[min(taken, len(plan) - 1)]
        taken += 1
        return entry


def chunks(entry):
    """The chunks of a stream, as objects."""
    def delta(**fields):
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}
    yield delta(role="assistant", content="")
    if "reasoning" in entry:
        yield delta(reasoning_content=entry["reasoning"])
    text = entry.get("text", "")
    for at in range(0, len(text), 5):
        yield delta(content=text[at:at + 5])
    for index, call in enumerate(entry.get("calls", [])):
        head = {"index": index, "type": "function", "function": {"name": call["name"], "arguments": ""}}
        if call.get("id") is not None:
            head["id"] = call["id"]
        yield delta(tool_calls=[head])
        arguments = call.get("arguments", "{}")
        for at in range(0, len(arguments), 3):
            yield delta(tool_calls=[{"index": index, "function": {"arguments": arguments[at:at + 3]}}])
    last = delta()
    last["choices"][0]["finish_reason"] = entry.get("finish", "tool_calls" if entry.get("calls") else "stop")
    yield last
    if entry.get("usage", True):
        yield {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}


def stream_bytes(entry):
    data = b": a comment\n\n"
    for chunk in chunks(entry):
        data += b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"
    if entry.get("fault") == "garbage":
        return data + b"data: {this is no JSON\n\n"
    if entry.get("fault") != "no_done":
        data += b"data: [DONE]\n\n"
    return data


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, body):
        log.write(json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                              "body": body.decode("utf-8", "replace")}) + "\n")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def plain(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.note(b"")
        if self.path == "/v1/models":
            return self.plain(200, {"Content-Type": "application/json"},
                              b'{"object":"list","data":[{"id":"fake-large"},{"id":"fake-small"}]}')
        return self.plain(404, {}, b'{"error":{"message":"no such path"}}')

    def do_POST(self):
        self.note(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        entry = next_entry()
        fault = entry.get("fault")
        if fault == "reset_early":
            return self.reset()
        if "status" in entry:
            return self.plain(entry["status"], entry.get("headers", {}), entry.get("body", "").encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = stream_bytes(entry)
        if fault in ("stall", "reset", "cut"):
            data = data[:len(data) // 2]
        size = entry.get("chunk", len(data))
        for at in range(0, len(data), size):
            self.piece(data[at:at + size])
            time.sleep(entry.get("delay", 0))
        if fault in ("stall", "keep_open"):
            over.wait()
        if fault in ("stall", "reset"):
            return self.reset()
        if fault == "drop_after_done":
            self.close_connection = True
            return self.connection.close()
        return self.piece(b"")

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that went away is what some tests want


server = Server(("127.0.0.1", 0), Handler)
if "--tls" in sys.argv:
    at = sys.argv.index("--tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[at + 1], sys.argv[at + 2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
print("port", server.server_address[1], flush=True)
sys.stdin.read()
over.set()
server.shutdown()
