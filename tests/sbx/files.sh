#!/bin/bash
# Writing outside the write roots, reading what is hidden, files with the set-user-id bit. Not
# covered: which paths deserve a mask (spec/sbx/masks_spec.lua).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    git init -q "$W/project" 2>/dev/null
    mkdir -p "$W/project/deep/er"
}
as_both
A=$W/bin/attempts

MOUNTS=("pin $W/project/.git" "floor $W/project/.git/config" "floor $W/project/.git/hooks")
denied "write ~/.zshrc" EROFS "$A" write "$W/home/.zshrc"
denied "write a new file in a sibling directory" EROFS "$A" write "$W/outside/new"
ln -s "$W/outside/file" "$W/project/link"
denied "write through a symbolic link" EROFS "$A" write "$W/project/link"
denied "write through /proc/self/root" EROFS "$A" write "/proc/self/root$W/outside/file"
sbx bash -c "exec 5<'$W/outside/file'; '$A' write /proc/self/fd/5; '$A' write /dev/fd/5"
expect "write through /proc/self/fd and /dev/fd" 1 $'write: EROFS\nwrite: EROFS'
sbx "$A" link "$W/outside/file" "$W/project/hard"
expect "hard link into the project" 1 "link: EXDEV"
sbx "$A" rename "$W/project/link" "$W/outside/moved"
expect "rename out of the project" 1 "rename: EXDEV"
rm "$W/project/link"
denied "chmod outside" EROFS "$A" chmod 0644 "$W/outside/file"
denied "utimes outside" EROFS "$A" utimes "$W/outside/file"
sbx "$A" setxattr "$W/outside/file"
expect "setxattr outside" 1 "setxattr: EROFS"
denied "unlink outside" "Read-only" rm -f "$W/outside/file"
echo outside >"$W/outside/file"
works "write in the project" "$A" write "$W/project/file"
works "make directories in the project" mkdir -p "$W/project/a/b"
works "write below /tmp, /var/tmp, /dev/shm and the runtime directory" sh -c \
    "echo 1 >/tmp/x && test -e /var/tmp/x && echo 1 >/dev/shm/x && echo 1 >\$XDG_RUNTIME_DIR/x"
if [ -e "$W/state/tmp/x" ] && [ ! -e /tmp/x ]; then ok "/tmp is the conversation's"; else bad "/tmp"; fi
works "/tmp stays for the next call" test -e /tmp/x

denied "read a secret" "cannot access" ls "$W/home/.ssh/id_test"
sbx ls -A "$W/home/.ssh"
expect "a masked directory is empty" 0 ""
sbx sh -c "echo x >'$W/home/.ssh/new'"
expect "a masked directory cannot be written" 2 "*Read-only*"
MOUNTS+=("mask $W/home/.zshrc")
sbx cat "$W/home/.zshrc"
expect "a masked file is empty" 0 ""
sbx "$A" write "$W/home/.zshrc"
expect "a masked file cannot be written" 1 "write: E*"
sbx stat -c %F "$W/home/.zshrc"
expect "a masked file is a regular file" 0 "regular empty file"
MOUNTS+=("mask $W/home/missing")
works "a missing mask stays missing" test ! -e "$W/home/missing"
sbx sh -c "ls -A '$W/state'"
expect "efr's own root is empty" 0 ""
mkdir -p "$W/state/scratch/one"
MOUNTS+=("root $W/state/scratch/one")
works "a root inside a mask is there" sh -c "echo 1 >'$W/state/scratch/one/x'"
sbx sh -c "ls -A '$W/state' '$W/state/scratch'"
expect "and nothing else of the masked directory" 0 "*scratch*one"
if [ -e "$W/state/scratch/one/x" ]; then ok "the write arrived"; else bad "the write arrived"; fi

sbx sh -c "echo x >>'$W/project/.git/config'"
expect "write .git/config" 2 "*Read-only*"
sbx sh -c "echo x >'$W/project/.git/hooks/post-commit'"
expect "plant a hook" 2 "*Read-only*"
sbx "$A" rename "$W/project/.git" "$W/project/.git2"
expect "rename .git" 1 "rename: EBUSY"
sbx sh -c "echo x >'$W/project/new' && mv '$W/project/new' '$W/project/.git/config'"
expect "rename over .git/config" 1 "*"

mode=04755
denied "chmod set-user-id" EPERM "$A" chmod $mode "$W/project/file"
denied "open with the set-user-id bit" EPERM "$A" open-mode $mode "$W/project/suid1"
denied "O_TMPFILE with the set-user-id bit" EPERM "$A" tmpfile-mode $mode "$W/project"
denied "mknod with the set-user-id bit" EPERM "$A" mknod 0104755 "$W/project/suid2"
chmod 755 "$W/project/file"
sbx "$A" fchmodat2 04755 "$W/project/file"
expect "fchmodat2 with the set-user-id bit" 1 "fchmodat2: EPERM"
works "an ordinary chmod" "$A" chmod 0755 "$W/project/file"
if [ "$(id -u)" = 0 ]; then
    sbx "$A" chmod 02755 "$W/project/file"
    expect "as root: the set-group-id bit" 1 "chmod: EPERM"
    sbx "$A" write /proc/sys/kernel/core_pattern
    expect "as root: /proc/sys" 1 "write: EROFS"
    sbx "$A" write /proc/sysrq-trigger
    expect "as root: /proc/sysrq-trigger" 1 "write: E*"
    sbx "$A" read /etc/shadow
    expect "as root (control): /etc/shadow is only hidden by a mask" 0 "read: worked"
    MOUNTS+=("mask /etc/shadow")
    sbx cat /etc/shadow
    expect "as root: a masked /etc/shadow" 0 ""
fi
sbx "$A" write /proc/self/comm
expect "write below /proc" 1 "write: E*"
finish
