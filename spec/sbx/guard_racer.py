# guard_racer.py DIR: until its standard input ends, DIR/sub is by turns a repository with a hook and a link to
# DIR/../outside. The hook comes back whenever it is gone. Prints one line when it has begun, and at the end how often
# it swapped.
import ctypes
import os
import select
import sys

top = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
hooks = os.open("sub/.git/hooks", os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)
os.symlink("../outside", "other", dir_fd=top)
libc = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE = 2
count = 0
while True:
    for _ in range(200):
        libc.renameat2(top, b"sub", top, b"other", RENAME_EXCHANGE)
    count += 200
    try:
        os.close(os.open("pre-commit", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755, dir_fd=hooks))
    except FileExistsError:
        pass
    if count == 200:
        print("racing", flush=True)
    if select.select([0], [], [], 0)[0]:
        break
print(count, flush=True)
