#!/bin/bash
# What the launcher refuses: bad plans, changed paths, a system that lacks something. Each refusal
# names its step, ends with 125 and runs nothing.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
as_both

# refused NAME PATTERN: runs the plan in CALL
refused() {
    OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </dev/null)
    STATUS=$?
    expect "$1" 125 "efr-sbx: setup failed: $2"
    if [ -e "$W/project/ran" ]; then bad "$1 (it ran)"; fi
}
edit() { # SED: on the plan with NULs as newlines
    tr '\0' '\n' <"$CALL/plan" | sed "$1" | tr '\n' '\0' >"$CALL/plan2"
    mv "$CALL/plan2" "$CALL/plan"
}
bad_plan() { # NAME SED PATTERN
    plan touch "$W/project/ran"
    edit "$2"
    refused "$1" "$3"
}

bad_plan "another magic" '1s/.*/plan/' "plan: not a plan"
bad_plan "another version" '2s/.*/2/' "plan: this launcher reads plans of version 1"
bad_plan "no end" '$d' "plan: the plan has no end"
bad_plan "bytes after the end" '$a more' "plan: bytes after the end of the plan"
bad_plan "an unknown keyword" 's/^private$/public/' "plan: unknown keyword: public"
bad_plan "another uid" '/^uid$/{n;s/.*/54321/}' "plan: the plan is for uid 54321"
bad_plan "a nonce that is none" '/^nonce$/{n;s/.*/xyz/}' "plan: nonce is not 32 hex digits"
bad_plan "two nonces" '/^cwd$/i nonce\nffffffffffffffffffffffffffffffff' "plan: nonce is given twice"
bad_plan "a relative path" '/^cwd$/{n;s/.*/project/}' "plan: cwd is not an absolute, normal path: project"
bad_plan "a path with .." "/^root\$/{n;s/\$/\\/../}" "plan: not an absolute, normal path: *"
bad_plan "a root at /" '/^root$/{n;s/.*/\//}' "plan: / cannot be a write root, mask or floor"
bad_plan "a root in /proc" '/^root$/{n;s/.*/\/proc\/self\/fd\/1/}' "plan: /proc/self/fd/1 lies in a tree of the kernel"
bad_plan "mounts out of order" '/^private$/,+1d;/^end$/i private\n/tmp\nprivate\n/var/tmp' "plan: mounts are not sorted at /tmp"
bad_plan "no private /tmp" '/^private$/,+1d' "plan: /tmp and /var/tmp are not both private"
bad_plan "no command" '/^arg$/,+1d' "plan: no command"
bad_plan "a missing directory" "/^cwd\$/{n;s/\$/\\/missing/}" "directory: *: No such file or directory"

plan touch "$W/project/ran"
head -c 1100000 /dev/zero >"$CALL/plan"
refused "a plan over 1 MiB" "call directory: plan is larger than 1048576 bytes"
plan touch "$W/project/ran"
chmod 755 "$CALL"
refused "a call directory for all" "call directory: * is not a private directory of this user"
plan touch "$W/project/ran"
ln -s "$CALL" "$W/call/link"
CALL=$W/call/link
refused "a call directory behind a link" "call directory: open *"
plan touch "$W/project/ran"
mv "$CALL/plan" "$CALL/plan2" && ln -s plan2 "$CALL/plan"
refused "a plan behind a link" "call directory: open plan: *"

# A path that changed under the plan.
mkdir "$W/real" && ln -s "$W/real" "$W/linked"
MOUNTS=("root $W/linked")
plan touch "$W/project/ran"
refused "a root that became a link" "mount sources: open $W/linked: Too many levels of symbolic links"
MOUNTS=("mask $W/linked")
plan touch "$W/project/ran"
refused "a mask that became a link" "mounts: open $W/linked: Too many levels of symbolic links"
MOUNTS=("floor $W/linked/x")
plan touch "$W/project/ran"
refused "a floor behind a link" "mount sources: open $W/linked/x: Too many levels of symbolic links"
MOUNTS=()

for path in "" ":/usr/bin" "/usr/bin:" "/usr/bin::/bin" "bin:/usr/bin" "."; do
    plan touch "$W/project/ran"
    OUT=$(PATH=$path "$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </dev/null)
    STATUS=$?
    expect "PATH='$path'" 125 "efr-sbx: setup failed: environment: PATH has an empty or relative entry"
done

# A refusal is in the result too, with the nonce.
MOUNTS=("root $W/linked")
sbx true
OUT=$(tr '\0' ' ' <"$CALL/result")
STATUS=0
expect "the result of a refusal" 0 "efr-result 1 nonce $NONCE started 0 landlock_abi * setup_error mount sources: *"
MOUNTS=("root $W/missing" "floor $W/missing2")
works "a missing root and a missing floor are skipped" true
MOUNTS=()

# The environment.
EXTRA=(unset "EFR_*" unset "*_proxy" secret "*token*" secret "AWS_*" keep "KEPT_TOKEN" set GREETING hello)
plan env
OUT=$(env -i PATH=/usr/bin:/bin EFR_X=1 http_proxy=x My_Token=1 KEPT_TOKEN=1 aws_x=1 GREETING=old PLAIN=yes \
    URL=https://u:p@h/ URL2=https://u@h/ "$(printf 'b\377d')=1" "$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null | sort | tr '\n' ' ')
STATUS=0
expect "the environment is filtered" 0 "GREETING=hello KEPT_TOKEN=1 PATH=/usr/bin:/bin PLAIN=yes TMPDIR=/tmp URL2=https://u@h/ XDG_RUNTIME_DIR=*"
# Below a directory of the host there is no mask and no pin.
plan touch "$W/project/ran"
OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </)
STATUS=$?
expect "a directory as standard input" 125 "*descriptor 0 is a directory of the host"
OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null 2>&1 1</)
STATUS=$?
expect "a directory as standard output" 125 "*descriptor 1 is a directory of the host"
if [ -e "$W/project/ran" ]; then bad "a directory as a standard descriptor (it ran)"; fi
finish
