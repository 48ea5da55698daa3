#!/usr/bin/env bash
# run.sh BUILD [VERSION...]: boots Debian's kernels in qemu (no KVM) and runs guest.sh in each.
#
# Owns: which kernels, their packages, the initial file system, the machine. Must not know: what is
# tested there (guest.sh). A kernel that apt does not offer is a failure. What is downloaded and
# unpacked stays in ~/.cache/efr-kernels.
set -euo pipefail
build=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/efr-kernels
limit=${EFR_KERNEL_LIMIT:-3600} # seconds a kernel may take
# EFR_KERNEL_TESTS=NAME,NAME: these of tests/sbx alone, beside the probe
versions=("$@")
((${#versions[@]})) || versions=(6.1 6.12)

# Modules that a distribution would load by itself, in what follows each is loaded with what it needs.
modules=(virtio_pci virtio_blk ext4 9p 9pnet_virtio overlay unix_diag loop btrfs xfs fuse)

say() { printf '%s\n' "$*"; }
die() {
    printf 'test-kernels: %s\n' "$*" >&2
    exit 1
}
mkdir -p "$cache"
work=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf "$work"' EXIT

# newest VERSION: the newest image package of Debian 12 or 13 for it.
newest() {
    apt-cache search --names-only "^linux-image-${1//./\\.}(\\.0-[0-9]+|\\.[0-9]+\\+deb1[23])-amd64\$" |
        cut -d' ' -f1 | sort -V | tail -n 1
}

# unpack PACKAGE: prints the directory with boot/ and lib/modules.
unpack() {
    local dir=$cache/$1
    if [[ ! -e $dir/done ]]; then
        rm -rf "$dir" && mkdir -p "$dir"
        (cd "$work" && apt-get download "$1" >&2) || die "apt cannot download $1"
        dpkg-deb -x "$work/$1"_*.deb "$dir"
        rm -f "$work/$1"_*.deb
        local release
        release=$(basename "$dir"/lib/modules/*)
        /sbin/depmod -b "$dir" "$release"
        touch "$dir/done"
    fi
    printf '%s' "$dir"
}

# The first file system: busybox, the modules in their order, and init.
initial() { # DIR OUT
    local dir=$1 out=$2 root=$work/initial release name file n=0
    release=$(basename "$dir"/lib/modules/*)
    rm -rf "$root" && mkdir -p "$root"/{bin,dev,proc,sys,modules,new,host}
    cp /bin/busybox "$root/bin/"
    cp "$here/init" "$root/init"
    chmod 755 "$root/init"
    for name in "${modules[@]}"; do
        /sbin/modprobe -d "$dir" -S "$release" --show-depends "$name" 2>/dev/null |
            sed -n 's/^insmod \([^ ]*\).*/\1/p' >>"$root/list" || true
    done
    awk '!seen[$0]++' "$root/list" | while read -r file; do
        n=$((n + 1))
        name=$(printf '%s/modules/%03d-%s' "$root" $n "$(basename "${file%.xz}")")
        case $file in
            *.xz) xz -dc "$file" >"$name" ;;
            *) cp "$file" "$name" ;;
        esac
    done
    rm "$root/list"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out"
}

# What the guest takes from us: the programs, the tests, what they read.
pack() {
    local keep=$work/efr
    mkdir -p "$keep/build/test"
    cp -r "$build/bin" "$keep/build/"
    cp "$build"/test/efr-sbx-unsafe "$build"/test/efr-lua "$keep/build/test/"
    mkdir -p "$keep/build/gen/sbx" "$keep/attackers"
    cp "$build/gen/sbx/seccomp_programs.h" "$keep/build/gen/sbx/"
    local file name
    for file in "$source"/tests/sbx/*.c; do
        name=$(basename "$file" .c)
        [[ $name == unsafe ]] && continue
        cc -std=c11 -D_GNU_SOURCE -O1 -o "$keep/attackers/$name" "$file" -lpthread
    done
    (cd "$source" && tar -c tests/sbx tests/e2e/gone.py tests/golden/sbx tests/kernels spec lua cli zsh docs) | tar -x -C "$keep"
    tar -c -C "$work" efr >"$work/efr.tar"
    rm -rf "$keep"
}

# The limit of a user's processes is a part of the memory: with 2 GiB it lies below the 8192 of a call.
boot() { # VERSION
    local package dir status=0 disk=$work/disk
    package=$(newest "$1")
    [[ $package ]] || die "apt offers no linux-image of Linux $1 for Debian 12 or 13 (after apt-get update)"
    dir=$(unpack "$package")
    initial "$dir" "$work/initial.gz"
    truncate -s 4G "$disk"
    mkfs.ext4 -q -F "$disk"
    say "== Linux $1: $package"
    timeout "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 4096 -nodefaults \
        -no-reboot -display none -monitor none -serial stdio -kernel "$dir"/boot/vmlinuz-* \
        -initrd "$work/initial.gz" -append "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nowatchdog${EFR_KERNEL_TESTS:+ efr.tests=$EFR_KERNEL_TESTS}" \
        -drive "file=$disk,if=virtio,format=raw,cache=unsafe" \
        -drive "file=$work/efr.tar,if=virtio,format=raw,readonly=on" \
        -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
        </dev/null | sed -u 's/\r//' | tee "$work/log" || status=$?
    rm -f "$disk"
    if ! grep -q '^guest: all passed$' "$work/log"; then
        say "== Linux $1: FAILED (qemu's status $status)"
        return 1
    fi
}

pack
failed=0
for version in "${versions[@]}"; do
    boot "$version" || failed=1
done
exit $failed
