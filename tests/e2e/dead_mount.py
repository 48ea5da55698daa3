"""dead_mount.py DIR: mounts a FUSE file system on DIR whose server never answers, prints `ready`, and
holds it until its input ends. Needs root and a mount namespace of its own."""

import ctypes
import os
import sys

fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
if libc.mount(b"dead", sys.argv[1].encode(), b"fuse.dead", 0, options.encode()) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
print("ready", flush=True)
sys.stdin.read()
