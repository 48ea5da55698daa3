#!/bin/bash
# Ordinary tools work in a call: git, python's processes, sqlite, make, a compiler, strace, zsh's
# own line, pipes and pseudo terminals.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    (
        cd "$W/project" && git init -q . && git config user.email a@b.c && git config user.name efr
    ) || exit 1
}
as_both
PYTHON=/usr/bin/python3
MOUNTS=("pin $W/project/.git" "floor $W/project/.git/config" "floor $W/project/.git/hooks")
EXTRA=(set HOME "$W/home")

works "git commit, branch, stash, rebase" bash -ec '
  echo 1 >a; git add a; git commit -qm one; git checkout -qb side; echo 2 >b; git add b
  git commit -qm two; echo 3 >>a; git stash -q; git stash pop -q; git commit -qam three
  git checkout -q -; echo 4 >c; git add c; git commit -qm four; git rebase -q side
  test "$(git log --oneline | wc -l)" = 4; test -z "$(git status --porcelain)"'
if [ -z "$(cd "$W/project" && git status --porcelain)" ]; then ok "git status outside is clean"; else bad "git status"; fi
works "python multiprocessing and shared memory" $PYTHON -c '
import multiprocessing
from multiprocessing import shared_memory
def f(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(3) as p: assert p.map(f, range(5)) == [0, 1, 4, 9, 16]
    q = multiprocessing.Queue(); q.put(1); assert q.get() == 1
    m = shared_memory.SharedMemory(create=True, size=100); m.close(); m.unlink()
    l = multiprocessing.Manager().list([1]); assert list(l) == [1]'
works "sqlite in WAL mode" $PYTHON -c '
import sqlite3
db = sqlite3.connect("wal.db"); assert db.execute("pragma journal_mode=wal").fetchone()[0] == "wal"
db.execute("create table if not exists t(a)"); db.execute("insert into t values(1)"); db.commit()'
works "make and a compiler" bash -ec '
  printf "int main(void){return 0;}\n" >m.c; printf "m: m.c\n\tcc -o m m.c\n" >Makefile
  make -s m; ./m'
works "strace of an own child" strace -f -o /dev/null true
works "a pseudo terminal" $PYTHON -c '
import os, pty
pid, fd = pty.fork()
if pid == 0: os.execvp("tty", ["tty"])
assert b"/dev/pts/" in os.read(fd, 100)'
works "inotify, memfd, eventfd and a fifo" $PYTHON -c '
import ctypes, os
libc = ctypes.CDLL(None)
i = libc.inotify_init(); assert libc.inotify_add_watch(i, b".", 0x100) > 0
open("made", "w").close(); assert b"made" in os.read(i, 200)
os.mkfifo("/tmp/fifo"); os.unlink("/tmp/fifo"); os.memfd_create("x"); os.eventfd(0)'
works "hard links, links and renames in the project" bash -ec 'echo 1 >x; ln x y; ln -s x z; mv y w; cat z w'
works "zsh -f with a here-document and a pipe" zsh -fc 'cat <<A | grep -q b
b
A'
works "nice, timeout, ulimit, xargs" bash -c 'ulimit -n 100; nice true; timeout 5 true; echo 1 | xargs test 1 ='
works "the nodes of /dev" bash -ec '
  echo x >/dev/null; head -c1 /dev/zero >/dev/null; head -c1 /dev/urandom >/dev/null
  head -c1 /dev/random >/dev/null; echo out >/dev/stdout; echo err >/dev/stderr; cat </dev/fd/0 >/dev/null
  ! echo x >/dev/full'
sbx ps -eo args
expect "ps shows the call alone" 0 "*efr-sbx run*ps -eo args"
works "sleep of a process group that is killed" bash -c 'set -m; sleep 100 & kill -- -$!; wait $!; true'
sbx sudo -n true
if [ "$STATUS" != 0 ]; then ok "sudo fails"; else bad "sudo"; fi
finish
