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
sbx "$A" rename "$W/outside/file" "$W/outside/moved"
expect "rename outside" 1 "rename: EROFS"
rm "$W/project/link"
denied "chmod outside" EROFS "$A" chmod 0644 "$W/outside/file"
denied "utimes outside" EROFS "$A" utimes "$W/outside/file"
for name in chown setxattr removexattr truncate fchmod futimens fsetxattr; do
    sbx "$A" $name "$W/outside/file"
    expect "$name outside" 1 "$name: EROFS"
done
sbx bash -c "exec 5<'$W/outside/file'; '$A' chmod 0600 /proc/self/fd/5"
expect "chmod through /proc/self/fd" 1 "chmod: EROFS"
sbx "$A" write /etc/new
expect "write in /etc" 1 "write: EROFS"
sbx "$A" mknod 0100600 "$W/outside/node"
expect "mknod outside" 1 "mknod: EROFS"
sbx mkfifo "$W/outside/fifo"
expect "mkfifo outside" 1 "*Read-only*"
sbx ln -s x "$W/outside/link"
expect "symlink outside" 1 "*Read-only*"
echo 1 >"$W/project/plain"
sbx "$A" link "$W/project/plain" "$W/outside/hard"
expect "hard link out of the project" 1 "link: EROFS"
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
    for args in "chmod 02755 $W/project/file" "fchmodat2 02755 $W/project/file" \
        "open-mode 02755 $W/project/sgid" "tmpfile-mode 02755 $W/project" \
        "mknod 0102755 $W/project/sgid"; do
        # shellcheck disable=SC2086
        sbx "$A" $args
        expect "as root: the set-group-id bit by ${args%% *}" 1 "${args%% *}: EPERM"
    done
    for file in sys/kernel/core_pattern sys/kernel/modprobe sysrq-trigger self/attr/current \
        self/oom_score_adj irq/default_smp_affinity; do
        [ -e /proc/$file ] || continue
        sbx "$A" write /proc/$file
        expect "as root: /proc/$file" 1 "write: EROFS"
    done
    sbx "$A" read /etc/shadow
    expect "as root (control): /etc/shadow is only hidden by a mask" 0 "read: worked"
    MOUNTS+=("mask /etc/shadow")
    sbx cat /etc/shadow
    expect "as root: a masked /etc/shadow" 0 ""
fi
sbx "$A" write /proc/self/comm
expect "write below /proc" 1 "write: EROFS"

# A mount below a write root is none itself. It is made in a namespace, so the host never has it.
mkdir -p "$W/project/inner"
plan sh -c "ls '$W/project/inner'; echo x >'$W/project/inner/file'"
own=(unshare --mount)
[ "$(id -u)" = 0 ] || own=(unshare --user --mount --map-current-user --keep-caps)
OUT=$("${own[@]}" sh -c "mount -t tmpfs none '$W/project/inner' && echo x >'$W/project/inner/host' &&
    exec '$W/bin/efr-sbx' run --call-dir '$CALL'" 2>&1 </dev/null)
STATUS=$?
expect "write a mount below a write root" 2 "host*Read-only*"
finish
