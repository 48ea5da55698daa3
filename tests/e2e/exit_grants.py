"""Runs inside a call and says which things of the machine it can reach: one line `open NAME` each.

usage: exit_grants.py HOME RUNTIME PORT DEVICE OTHER_DEVICE
"""
import ctypes
import errno
import os
import socket
import sys

HOME, RUNTIME, PORT, DEVICE, OTHER = sys.argv[1:6]
CLONE_NEWUSER = 0x10000000


def writes(path):
    with open(path, "a") as f:
        f.write("x")


def makes(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def reads(path):
    with open(path) as f:
        if "SECRET" not in f.read():
            raise OSError("empty")


def connects(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)


def reaches(_):
    with socket.create_connection(("127.0.0.1", int(PORT)), 5):
        pass


def namespace(_):
    pid = os.fork()
    if pid == 0:
        os._exit(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) and 1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError("unshare")


def exists(path):
    os.lstat(path)


def opens(path):
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


THINGS = [
    ("project", writes, "made-by-a-call"),
    ("file", writes, HOME + "/file"),
    ("other-file", writes, HOME + "/other"),
    ("notes", writes, HOME + "/notes/a"),
    ("new-in-notes", makes, HOME + "/notes/new"),
    ("dir", writes, HOME + "/dir/file"),
    ("new-in-home", makes, HOME + "/new"),
    ("startup-file", writes, HOME + "/.zshrc"),
    ("efr-config", writes, HOME + "/.config/efr/config.toml"),
    ("secret", reads, HOME + "/.ssh/id"),
    ("hidden", reads, HOME + "/.aws/config"),
    ("hidden-too", reads, HOME + "/.kube/config"),
    ("socket", connects, HOME + "/s1"),
    ("other-socket", connects, HOME + "/s2"),
    ("bus", connects, RUNTIME + "/bus"),
    ("sway", connects, RUNTIME + "/sway-ipc.1.sock"),
    ("runtime-socket", connects, RUNTIME + "/other"),
    ("efrd", connects, RUNTIME + "/efr/daemon.sock"),
    ("device", opens, DEVICE),
    ("other-device", exists, OTHER),
    ("network", reaches, ""),
    ("namespaces", namespace, ""),
]

for name, attempt, what in THINGS:
    try:
        attempt(what)
    except (OSError, ValueError) as err:
        print("closed", name, errno.errorcode.get(getattr(err, "errno", None) or 0, err))
    else:
        print("open", name)
