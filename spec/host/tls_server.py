"""A TLS server for http_spec.lua: tls_server.py CERT KEY. Prints its port, answers every
request with "secret enough" in two chunks, and ends when its standard input ends."""

import os
import socket
import ssl
import sys
import threading


def end_with_stdin():
    sys.stdin.buffer.read()
    os._exit(0)


def answer(client):
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            return
        data += more
    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nsecret \r\n")
    client.sendall(b"6\r\nenough\r\n0\r\n\r\n")


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    while True:
        raw, _ = listener.accept()
        try:
            with context.wrap_socket(raw, server_side=True) as client:
                answer(client)
        except (ssl.SSLError, OSError):
            raw.close()  # a client that does not trust us


main()
