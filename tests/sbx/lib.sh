# Shared by the sandbox tests: a small world of its own and calls made from hand-written plans.
# Not covered here: the plan's policy (spec/sbx/), the daemon's side of a call.
# shellcheck shell=bash
# A test is started with EFR_BIN (where efr-sbx is). As root it runs twice: as root and, through
# setpriv, as an ordinary user.

set -u
shopt -s extglob
ORDINARY_UID=12345
TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
EFR_SBX=${EFR_SBX:-${EFR_BIN:-$TESTS/../../build/bin}/efr-sbx}

# With EFR_SBX_BACKEND=bwrap every plan says that bubblewrap builds the call; what then differs stands
# in bwrap-differs, and a row there that does not differ fails.
BWRAP=
[ "${EFR_SBX_BACKEND:-}" != bwrap ] || BWRAP=$(command -v bwrap) || exit 1
export EFR_SBX_DIFFERS=${BWRAP:+$TESTS/bwrap-differs}

# The world: $W/home (HOME), $W/project (a write root), $W/state/tmp (backing of /tmp),
# $W/run (the runtime directory's place), $W/bin (launcher and attackers).
world() {
    local base=$HOME
    [ "$(id -u)" != 0 ] || base=/var/lib # not below /tmp: that is private; not /root: mode 0700
    W=$(mktemp -d "$base/efr-sbx-test.XXXXXX") || exit 1
    trap 'tidy; chmod -R u+rwX "$W" 2>/dev/null; rm -rf "$W"' EXIT
    chmod 755 "$W"
    mkdir -p "$W/home/.ssh" "$W/project" "$W/state/tmp" "$W/run/xrt" "$W/bin" "$W/outside" "$W/call"
    cp "$EFR_SBX" "$W/bin/efr-sbx" || exit 1
    chmod 1777 "$W/state/tmp"
    echo secret >"$W/home/.ssh/id_test"
    echo rc >"$W/home/.zshrc"
    echo outside >"$W/outside/file"
    mkdir "$W/outside/dir"
}

# Compiles tests/sbx/NAME.c into the world.
attacker() {
    if [ -n "${EFR_SBX_ATTACKERS:-}" ]; then # compiled before, by tests/kernels/run.sh
        cp "$EFR_SBX_ATTACKERS/$1" "$W/bin/$1" || exit 1
        return
    fi
    cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -o "$W/bin/$1" "$TESTS/$1.c" -lpthread ||
        exit 1
}

# Runs the calling script again: as root and as an ordinary user (SBX_WHO=user: only as that).
# Returns in the inner run only.
as_both() {
    if [ -n "${SBX_INNER:-}" ]; then
        W=$SBX_INNER
        export HOME=$W/home
        cd "$W/project" || exit 1
        return 0
    fi
    local status=0 script
    script=$(readlink -f "$0")
    world
    prepare
    if [ "$(id -u)" = 0 ]; then
        if [ "${SBX_WHO:-}" != user ]; then
            echo "# as root"
            SBX_INNER=$W bash "$script" || status=1
            tidy
            rm -rf "$W"
            world
            prepare
        fi
        chown -R $ORDINARY_UID:$ORDINARY_UID "$W"
        cp "$script" "$TESTS/lib.sh" "$TESTS/bwrap-differs" "$W/bin/"
        echo "# as an ordinary user"
        (cd "$W" && SBX_INNER=$W setpriv --reuid=$ORDINARY_UID --regid=$ORDINARY_UID \
            --clear-groups bash "$W/bin/$(basename "$script")") || status=1
    else
        SBX_INNER=$W bash "$script" || status=1
    fi
    exit $status
}

# What a test wants in its world before the user is changed; tests replace it.
prepare() {
    :
}
# What has to end before the world is removed.
tidy() {
    :
}

NONCE=0123456789abcdef0123456789abcdef
MOUNTS=()
LAYERS=()
EXTRA=()

# plan ARG...: writes the plan of a call that runs ARG. MOUNTS holds further mount lines
# "kind path" (of an overlay "overlay path layer"); LAYERS and EXTRA further fields before and after.
plan() {
    CALL=$W/call/$RANDOM$RANDOM
    mkdir -m 700 "$CALL"
    {
        printf '%s\0' efr-plan 1 nonce $NONCE uid "$(id -u)" cwd "${PLAN_CWD:-$W/project}" \
            tmp "$W/state/tmp" ${LAYERS[@]+"${LAYERS[@]}"}
        sorted_mounts "private /tmp" "private /var/tmp" "runtime $W/run/xrt" "root $W/project" \
            "mask $W/state" "mask $W/home/.ssh" ${MOUNTS[@]+"${MOUNTS[@]}"}
        [ -z "$BWRAP" ] || printf '%s\0' bwrap "$BWRAP"
        printf '%s\0' set XDG_RUNTIME_DIR "$W/run/xrt" set TMPDIR /tmp ${EXTRA[@]+"${EXTRA[@]}"}
        local arg
        for arg in "$@"; do printf '%s\0' arg "$arg"; done
        printf '%s\0' end
    } >"$CALL/plan"
}

# By depth, then kind, as the launcher demands.
sorted_mounts() {
    local line kind path
    for line in "$@"; do
        kind=${line%% *} path=${line#* }
        local slashes=${path//[^\/]/} rank=0
        case $kind in
            mask) rank=0 ;; private) rank=1 ;; runtime) rank=2 ;; overlay) rank=3 ;;
            root) rank=4 ;; pin) rank=5 ;; grant) rank=6 ;; socket) rank=7 ;; floor) rank=8 ;;
        esac
        printf '%04d %d %s %s\n' ${#slashes} $rank "$kind" "$path"
    done | sort | while read -r _ _ kind path; do
        [ "$kind" != overlay ] || printf '%s\0' "$kind" "${path% *}" "${path##* }"
        [ "$kind" = overlay ] || printf '%s\0' "$kind" "$path"
    done
}

# sbx ARG...: runs ARG contained; output in OUT, status in STATUS.
sbx() {
    plan "$@"
    OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </dev/null)
    STATUS=$?
}

FAILED=0
ok() {
    echo "ok - $1"
}
bad() {
    echo "not ok - $1: status ${STATUS-} output: ${OUT-}"
    FAILED=1
}

# differs NAME: what bwrap-differs wants of a row of this script.
differs() {
    [ -n "$BWRAP" ] || return 1
    local who=user
    [ "$(id -u)" != 0 ] || who=root
    awk -F ' [|] ' -v script="$(basename "$0")" -v row="$1" -v who=$who '
        $1 == script && $2 == row && ($3 == who || $3 == "both") { print $4; found = 1 }
        END { exit !found }' "$EFR_SBX_DIFFERS"
}
# fits STATUS PATTERN: the last sbx.
fits() {
    # shellcheck disable=SC2053
    [ "$STATUS" = "$1" ] && [[ $OUT == $2 ]]
}

# expect NAME STATUS PATTERN: of the last sbx.
expect() {
    local wanted
    if ! wanted=$(differs "$1"); then
        if fits "$2" "$3"; then ok "$1"; else bad "$1"; fi
    elif fits "$2" "$3"; then
        bad "$1 (stands in bwrap-differs and is the same)"
    else
        if fits "${wanted%% *}" "${wanted#* }"; then ok "$1 (differs)"; else bad "$1 (differs)"; fi
    fi
}

# denied NAME PATTERN CMD...: the command fails contained with PATTERN in its output, and works
# outside (the control).
denied() {
    local name=$1 pattern=$2
    shift 2
    sbx "$@"
    # shellcheck disable=SC2053
    if [ "$STATUS" -ne 0 ] && [[ $OUT == *$pattern* ]]; then ok "$name"; else bad "$name"; fi
    if ! OUT=$("$@" 2>&1 </dev/null); then
        STATUS=$?
        bad "$name (control: works without the sandbox)"
    fi
}

# works NAME CMD...
works() {
    local name=$1
    shift
    sbx "$@"
    expect "$name" 0 "*"
}

finish() {
    exit $FAILED
}
