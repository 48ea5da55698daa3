#!/bin/bash
# Also as root.
# A real contained call for each mask and each floor of the data tables (places.lua): a new entry is
# tested by existing. Everything happens in a mount namespace with a copy of /etc and an empty /run and
# /var/lib, so that also the places of the system can be made. Not covered: git's pins (git.sh).
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
bin=${EFR_BIN:-$tests/../../build/bin}
if [ -z "${PLACES_INNER:-}" ]; then
    own=(unshare --mount)
    [ "$(id -u)" = 0 ] || own=(unshare --user --mount --map-current-user --keep-caps)
    PLACES_INNER=1 exec "${own[@]}" bash "$0"
fi
copy=$(mktemp -d)
cp -a /etc/. "$copy" 2>/dev/null || true # what is not readable is not needed
for dir in /run /var/lib; do mount -t tmpfs none $dir; done
mkdir /var/lib/etc
mv "$copy"/* /var/lib/etc/
rm -rf "$copy"
mount --bind /var/lib/etc /etc
cd "$tests/../.."
export EFR_SOURCE=$PWD EFR_BIN=$bin
exec "$bin/../test/efr-lua" "$(command -v busted)" --helper=spec/helper.lua spec/sbx/places.lua
