# A server on a Unix socket that answers every connection with one byte: serve.py PATH BYTE.
# Prints "ready" once it listens.
import os
import socket
import sys

path, byte = sys.argv[1], sys.argv[2].encode()
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind("\0" + path[1:] if path.startswith("@") else path)
if not path.startswith("@"):
    os.chmod(path, 0o777)
server.listen(64)
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    try:
        peer.sendall(byte)
    except OSError:
        pass
    peer.close()
