#!/bin/bash
# The bubblewrap backend under an AppArmor profile that takes every capability from what bubblewrap
# starts: a call of its own, then the surface, the ordinary tools and the caches. In a booted kernel, as
# its root; the calls are an ordinary user's. Not covered: Ubuntu's own profile and kernel.
# shellcheck disable=SC1090,SC1091
export EFR_SBX_BACKEND=bwrap SBX_WHO=user
lib=$(dirname "$0")/lib.sh # beside the copy that as_both makes
[ -e "$lib" ] || lib=$(dirname "$0")/../sbx/lib.sh
. "$lib"
kernels=$(cd "$(dirname "$0")" && pwd)
as_user=(setpriv --reuid="$ORDINARY_UID" --regid="$ORDINARY_UID" --clear-groups)
mounts() { "${as_user[@]}" bwrap --unshare-user --cap-add ALL --bind / / unshare --mount true 2>&1; }
if [ -z "${SBX_INNER:-}" ]; then
    mountpoint -q /sys/kernel/security || mount -t securityfs securityfs /sys/kernel/security || exit 1
    OUT=$(mounts) && STATUS=0 || STATUS=$?
    expect "without a profile what bubblewrap starts has capabilities (control)" 0 ""
    "${EFR_APPARMOR_PARSER:-apparmor_parser}" --replace --skip-cache "$kernels/apparmor.profile" || exit 1
    OUT=$(mounts) && STATUS=0 || STATUS=$?
    if [ "$STATUS" != 0 ]; then ok "with it none"; else bad "with it none"; fi
    for script in surface ordinary caches; do
        echo "# $script.sh"
        bash "$TESTS/$script.sh" || FAILED=1
    done
    [ "$FAILED" = 0 ] || { echo "not ok - under AppArmor" && exit 1; }
fi
as_both
sbx cat /proc/self/attr/current
expect "a call is under both profiles" 0 "efr-test-bwrap//&efr-test-unpriv ?enforce?"
finish
