#!/bin/bash
# A call's own sockets on ext4, btrfs, xfs, tmpfs and overlays, and a host's socket beside them.
# File systems in files, mounted in a mount namespace of this test alone, so this needs root and
# loop devices; as another user only the file systems that are there.
# shellcheck disable=SC1091,SC2034,SC2016
if [ "$(id -u)" = 0 ] && [ -z "${SBX_MOUNTS:-}" ]; then
    SBX_MOUNTS=1 exec unshare --mount --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
PYTHON=/usr/bin/python3
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
prepare() {
    cp "$TESTS/own_sockets.py" "$TESTS/serve.py" "$W/bin/"
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
    attacker btrfs_twin
    attacker attempts
    mkdir "$W/fs"
    [ "$(id -u)" != 0 ] || mount_all
}

on_file() { # TYPE SIZE MKFS...: below $W/fs/TYPE
    local type=$1 size=$2
    shift 2
    mkdir "$W/fs/$type"
    truncate -s "$size" "$W/$type.img"
    if ! type -P "$1" >/dev/null || ! "$@" "$W/$type.img" >/dev/null 2>"$W/err" ||
        ! mount -o loop -t "$type" "$W/$type.img" "$W/fs/$type" 2>"$W/err"; then
        echo "ok - $type # skip $(tail -n 1 "$W/err")"
        rmdir "$W/fs/$type"
    fi
}
overlay() { # NAME LOWER UPPER
    mkdir -p "$W/fs/$1" "$3/upper" "$3/work"
    echo lower >"$2/from-lower"
    if ! mount -t overlay overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/work$4" "$W/fs/$1" 2>"$W/err"; then
        echo "ok - overlay $1 # skip $(tail -n 1 "$W/err")"
        rmdir "$W/fs/$1"
    fi
}
mount_all() {
    local dir
    on_file ext4 64M mkfs.ext4 -q
    on_file btrfs 128M mkfs.btrfs -q
    on_file xfs 300M mkfs.xfs -q
    mkdir "$W/fs/tmpfs" "$W/lower"
    mount -t tmpfs none "$W/fs/tmpfs"
    mkdir "$W/tmpfs-upper"
    mount -t tmpfs none "$W/tmpfs-upper"
    overlay overlay-tmpfs "$W/lower" "$W/tmpfs-upper" ""
    overlay overlay-xino "$W/fs/tmpfs" "$W/tmpfs-upper/two" ",xino=on"
    if [ -d "$W/fs/ext4" ]; then
        mkdir "$W/fs/ext4/lower"
        overlay overlay-disk "$W/fs/tmpfs" "$W/fs/ext4/disk" ""
        overlay overlay-same "$W/fs/ext4/lower" "$W/fs/ext4/same" ""
    fi
    if [ -d "$W/fs/btrfs" ]; then
        overlay overlay-btrfs "$W/fs/tmpfs" "$W/fs/btrfs/overlay" ""
        btrfs subvolume create "$W/fs/btrfs/project" >/dev/null
        btrfs subvolume create "$W/fs/btrfs/project/inner" >/dev/null
        btrfs subvolume create "$W/fs/btrfs/other" >/dev/null
    fi
    for dir in "$W"/fs/*; do
        mkdir -p "$dir/project"
    done
}
tidy() {
    local dir
    [ -z "${SBX_MOUNTS:-}" ] || for dir in "$W"/fs/overlay-* "$W"/fs/* "$W/tmpfs-upper"; do
        ! mountpoint -q "$dir" || umount "$dir"
    done
}
as_both
serve() { # PATH: a host's server
    coproc SERVE { exec $PYTHON "$W/bin/serve.py" "$1" H; }
    SERVER=$SERVE_PID
    read -r _ <&"${SERVE[0]}"
}
stop() {
    kill "$SERVER" && wait "$SERVER" 2>/dev/null
}

for dir in "$W"/fs/*/project "$PWD"; do
    [ -d "$dir" ] || continue
    MOUNTS=()
    [ "$dir" = "$PWD" ] || MOUNTS=("root $dir")
    name=${dir#"$W"/}
    sbx $PYTHON "$W/bin/own_sockets.py" "$dir"
    expect "own sockets in $name" 0 "all as expected"
    serve "$dir/host"
    sbx "$W/bin/attempts" unix "$dir/host"
    expect "a host's socket in $name" 1 "unix: EACCES"
    stop
done
[ -d "$W/fs/btrfs" ] || finish

# btrfs gives the same inode numbers in each subvolume. The twin makes files until its socket has
# the number of the host's.
BTRFS=$W/fs/btrfs
twin() { # NAME HOST-SOCKET OWN-DIRECTORY INODES-BEFORE
    local form
    for form in wait subvolume; do
        "$W/bin/btrfs_twin" use-up "${2%/*}" "$4"
        rm -f "$2"
        serve "$2"
        plan "$W/bin/btrfs_twin" connect "$2" "$3"
        OUT=$(EFR_SBX_TEST_UNSAFE=$form "$W/bin/efr-sbx-unsafe" run --call-dir "$CALL" 2>&1 </dev/null)
        STATUS=$?
        if [ $form = wait ]; then
            expect "btrfs: $1" 1 "twin: EACCES"
        else
            expect "btrfs: $1 (control: gets out)" 0 "twin: H"
        fi
        stop
    done
}
MOUNTS=("root $BTRFS/project")
twin "a socket in a subvolume of the project" "$BTRFS/project/inner/sock" "$BTRFS/project" 1000
MOUNTS=("root $BTRFS/project" "root $BTRFS/other")
twin "a socket in another root's subvolume" "$BTRFS/other/sock" "$BTRFS/project" 3000
MOUNTS=("root $BTRFS/project")
sbx "$W/bin/btrfs_twin" subvolume "$BTRFS/project"
expect "btrfs: a new subvolume" 1 "twin: EPERM"
finish
