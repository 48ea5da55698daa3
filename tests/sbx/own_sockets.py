# Connects to sockets that this program makes itself: own_sockets.py DIRECTORY [private]. Prints
# a line for each case that went wrong and ends with 1 then. With "private" the directory is one
# where only the conversation makes sockets, so a dead socket's file is refused as the kernel does.
import ctypes
import errno
import os
import socket
import sys
import threading

place, private = os.path.realpath(sys.argv[1]), len(sys.argv) > 2
work = os.path.join(place, "own.%d" % os.getpid())
os.mkdir(work)
os.mkdir(work + "/sub")
os.chdir(work)
failed = []


def serve(name, kind=socket.SOCK_STREAM, backlog=16):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(name)
    if backlog is not None:
        server.listen(backlog)
    return server


def attempt(name, kind=socket.SOCK_STREAM, flags=0):
    client = socket.socket(socket.AF_UNIX, kind | flags)
    client.settimeout(None)
    if flags & socket.SOCK_NONBLOCK:
        client.setblocking(False)
    code = client.connect_ex(name)
    return client, errno.errorcode.get(code, "worked")


def expect(what, got, want):
    if got != want:
        failed.append("%s: %s, not %s" % (what, got, want))


def wanted(what, otherwise):
    """What bwrap-differs says of a row of this file, where that counts."""
    if os.environ.get("EFR_SBX_DIFFERS"):
        with open(os.environ["EFR_SBX_DIFFERS"]) as rows:
            for row in rows:
                fields = row.rstrip("\n").split(" | ")
                if fields[:2] == ["own_sockets.py", what]:
                    return fields[3]
    return otherwise


def talks(what, server, name, kind=socket.SOCK_STREAM):
    client, answer = attempt(name, kind)
    expect(what, answer, "worked")
    if answer == "worked":
        server.accept()[0].send(b"x")
        expect(what + ": a byte", client.recv(1), b"x")


server = serve(work + "/absolute")
talks("an absolute name", server, work + "/absolute")
talks("a relative name", server, "absolute")
talks("a name with dots", server, "./sub/../absolute")
os.symlink("absolute", "link")
os.symlink(work, "sub/up")
talks("a link", server, "link")
talks("a link to the directory", server, work + "/sub/up/absolute")
relative, packets = serve("relative"), serve("packets", socket.SOCK_SEQPACKET)
mute = serve("mute", backlog=None)
talks("bound by a relative name", relative, work + "/relative")
os.chdir("sub")
talks("from another directory", server, "../absolute")
os.chdir("..")
talks("seqpacket", packets, "packets", socket.SOCK_SEQPACKET)
expect("another type", attempt("packets")[1], "EPROTOTYPE")
expect("bound, not listening", attempt(work + "/mute")[1], "ECONNREFUSED")
full = serve("full", backlog=0)
held = attempt("full")
expect("a full queue does not block", attempt("full", flags=socket.SOCK_NONBLOCK)[1], "EAGAIN")
open("file", "w").close()
expect("a file that is no socket", attempt("file")[1], "ECONNREFUSED")
expect("a missing name", attempt("missing")[1], "ENOENT")
expect("a magic link", attempt("/proc/self/root%s/absolute" % work)[1], "EACCES")

dead = serve("dead")
dead.close()
expect("a dead socket", attempt("dead")[1], "ECONNREFUSED" if private else "EACCES")
moved = serve("before")
os.rename("before", "after")
expect("renamed after the bind", attempt("after")[1], "worked" if private else "EACCES")

# A list of many datagrams, the wanted one among them.
many = [serve("sub/%d" % i) for i in range(400)]
talks("the first of many", many[0], "sub/0")
talks("the last of many", many[-1], work + "/sub/399")
talks("the one before them", server, "absolute")
del many

pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    os._exit(attempt("absolute")[1] != wanted("a program that is not dumpable", "worked"))
expect("a program that is not dumpable", os.waitpid(pid, 0)[1], 0)

# A server whose accept loop waits for a connect of its own.
inner, outer = serve("inner"), serve("outer", backlog=0)


def forward():
    for _ in range(20):
        client, _ = outer.accept()
        to, answer = attempt("inner")
        client.send(to.recv(1) if answer == "worked" else b"-")
        client.close()


def answer_inner():
    for _ in range(20):
        inner.accept()[0].send(b"i")


def ask():
    client, answer = attempt("outer")
    expect("accept that connects", (answer, client.recv(1)), ("worked", b"i"))


crowd = serve("crowd", backlog=0)


def wait_for_accept():
    client, answer = attempt("crowd")
    expect("100 connects at once", (answer, client.recv(1)), ("worked", b"x"))


def answer_crowd():
    for _ in range(100):
        crowd.accept()[0].send(b"x")


threads = [threading.Thread(target=f) for f in
           [forward, answer_inner] + [ask] * 20 + [wait_for_accept] * 100 + [answer_crowd]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for directory, _, names in os.walk(work, topdown=False):
    for name in names:
        os.unlink(os.path.join(directory, name))
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        (os.unlink if os.path.islink(path) else os.rmdir)(path)
os.rmdir(work)
print("\n".join(failed) if failed else "all as expected")
sys.exit(bool(failed))
