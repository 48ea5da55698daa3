#!/bin/bash
# efr's own git in its domain: what it reads, writes, runs and reaches, its environment, its time
# limit, and the race of a directory that becomes a link to secrets while git reads. The race's
# control is the same git without Landlock (build/test/efr-sbx-unsafe), which must take the secret.
# Not covered: which places efrd gives (spec/sbx/git_spec.lua).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
prepare() {
    attacker git_race
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
    (
        cd "$W/project" && git init -q -b main . && git config user.email a@b.c &&
            git config user.name efr && mkdir d && echo plain >d/id_test && git add . &&
            git commit -qm one
    ) || exit 1
    # One that swaps with a link to ~/.ssh: a file of the same name lies behind both.
    mkdir "$W/store" "$W/race" && mkdir "$W/race/dir" && echo plain >"$W/race/dir/id_test"
    ln -s "$W/home/.ssh" "$W/race/link"
    git init -q --bare "$W/store"
}
as_both
ROOT=$W/project
unset EFR_SBX_TEST_UNSAFE

# own ARG...: git in the domain of $ROOT; options before --.
own() {
    OUT=$("$W/bin/efr-sbx" git --root "$ROOT" "$@" 2>&1 </dev/null)
    STATUS=$?
}

own -- log --format=%s
expect "reads its root" 0 one
own -- status --porcelain
expect "status of a clean tree says nothing" 0 ""
own -- config user.name changed
expect "writes nothing in its root" 255 "*"
own -- -C "$W/outside" status
expect "finds no repository elsewhere" 128 "*not a git repository*"
own -- hash-object -- "$W/home/.ssh/id_test"
expect "reads nothing else" 128 "*Permission denied*"
own -- log --format=%s --no-such-option
expect "git's own status comes back" 128 "*no-such-option*"
own --git-dir "$W/store" -- --git-dir "$W/store" hash-object -w d/id_test
expect "a git directory is not writable" 128 "*"
own --store "$W/store" -- --git-dir "$W/store" hash-object -w d/id_test
expect "the store is writable" 0 "$(git hash-object "$ROOT/d/id_test")"
rm "$W/store/objects/"??/*

# No program but git, whoever names it: neither one of the root nor one of the system.
echo "* filter=f diff=d" >"$ROOT/.git/info/attributes"
printf '#!/bin/sh\necho RAN >&2\ntouch %s/ran\ncat\n' "$W/state/tmp" >"$ROOT/.git/code"
chmod 755 "$ROOT/.git/code"
echo more >>"$ROOT/d/id_test"
RAN=
for key in filter.f.clean filter.f.process diff.d.command diff.d.textconv core.fsmonitor alias.x; do
    for value in "$ROOT/.git/code" "sh $ROOT/.git/code" "echo R''AN >&2; cat"; do
        [ $key = alias.x ] && value="!$value"
        git -C "$ROOT" config "$key" "$value"
        for line in diff "hash-object d/id_test" x; do
            # shellcheck disable=SC2086
            own --store "$W/store" -- $line
            [[ $OUT != *RAN* ]] || RAN="$RAN $key=$value"
        done
        git -C "$ROOT" config --unset "$key"
    done
done
OUT=$RAN STATUS=0
expect "a planted setting runs nothing" 0 ""
git -C "$ROOT" config diff.d.textconv "$ROOT/.git/code"
(cd "$ROOT" && git --no-pager diff >/dev/null 2>&1)
if [ -e "$W/state/tmp/ran" ]; then ok "  (control: a bare git runs it)"; else bad "control: textconv"; fi
git -C "$ROOT" config --unset diff.d.textconv
rm "$ROOT/.git/info/attributes"
git -C "$ROOT" checkout -q .

own -- ls-remote git://127.0.0.1/x
expect "asks no other machine" 128 "*not allowed*"
own -- credential-cache --socket "$W/cache" get
expect "has no socket" 128 "*unable to connect*Operation not permitted*"
OUT=$(git credential-cache --socket "$W/cache" get 2>&1 </dev/null)
STATUS=$?
expect "  (control: outside it has)" 0 ""
own -- daemon --listen=127.0.0.1 --port=1
expect "serves nothing" 128 "*unable to allocate any listen sockets*"

export GIT_TRACE=1 GIT_CONFIG_PARAMETERS="'core.pager'='x'" GIT_EXEC_PATH=$W
own -- var GIT_PAGER
expect "the caller's environment does not come in" 0 cat
unset GIT_TRACE GIT_CONFIG_PARAMETERS GIT_EXEC_PATH
echo '[core] pager = theirs' >"$W/home/.gitconfig"
own -- config --list --show-origin
expect "the user's settings do not count" 0 "!(*theirs*)"
own --user-config --read "$W/home/.gitconfig" -- config --list --show-origin
expect "  unless they are asked for" 0 "*theirs*"
own --user-config -- config --list
expect "  and only where they may be read" 128 "*"

mv "$ROOT/.git/config" "$ROOT/.git/kept" && mkfifo "$ROOT/.git/config"
own --timeout-ms 300 -- status
expect "ends at its time limit" 124 "*no end after 300 ms*"
rm "$ROOT/.git/config" && mv "$ROOT/.git/kept" "$ROOT/.git/config"
ln -s "$ROOT" "$W/link"
ROOT=$W/link
own -- status
expect "a root is named without links" 125 "*Too many levels*"
ROOT=/
own -- status
expect "/ is no root" 125 "*not /*"
ROOT=$W/project

# The race: git adds the directory while it becomes a link. The name's file is a secret behind one
# of the two. A round ends when git ends.
rounds=300
[ "${EFR_TEST_SIZE:-ci}" = long ] && rounds=20000
export GIT_DIR=$W/store GIT_INDEX_FILE=$W/store/race.index
SECRET=$(git hash-object "$W/home/.ssh/id_test")
PLAIN=$(git hash-object "$W/race/dir/id_test")
race() { # PROGRAM
    coproc SWAP { exec "$W/bin/git_race" "$W/race/dir" "$W/race/link"; }
    read -r _ <&"${SWAP[0]}"
    local i swap=$SWAP_PID
    for ((i = 0; i < rounds; i++)); do
        "$1" git --root "$W/race" --store "$W/store" -- --work-tree "$W/race" \
            hash-object -w dir/id_test >/dev/null 2>&1
        if [ -e "$W/store/objects/${SECRET:0:2}/${SECRET:2}" ]; then break; fi
    done
    kill "$swap" && wait "$swap" 2>/dev/null
    SEEN=no
    [ -e "$W/store/objects/${PLAIN:0:2}/${PLAIN:2}" ] && SEEN=yes
    if [ -e "$W/store/objects/${SECRET:0:2}/${SECRET:2}" ]; then TAKEN=yes; else TAKEN=no; fi
    OUT="taken: $TAKEN, seen: $SEEN" STATUS=0
    rm -rf "$W/store/objects/"??
}
race "$W/bin/efr-sbx"
expect "race: a directory becomes a link to secrets, $rounds rounds" 0 "taken: no, seen: yes"
export EFR_SBX_TEST_UNSAFE=no-landlock
race "$W/bin/efr-sbx-unsafe"
expect "race (control: without Landlock the secret is taken)" 0 "taken: yes, seen: *"
finish
