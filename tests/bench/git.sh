#!/bin/bash
# Cost of efr's own git: the questions that a snapshot and the guard ask, by git alone and by `efr-sbx git`, on a
# repository of 1000 files. Taking turns in one run; the ratios are what counts.
# shellcheck disable=SC1091
set -u
here=$(cd "$(dirname "$0")" && pwd)
EFR_SBX=${EFR_SBX:-${EFR_BIN:-$here/../../build/bin}/efr-sbx}
ROUNDS=${1:-200}
W=$(mktemp -d "$HOME/efr-bench-git.XXXXXX") || exit 1
trap 'rm -rf "$W"' EXIT
cc -std=c11 -D_GNU_SOURCE -O1 -o "$W/spawn_times" "$here/spawn_times.c" || exit 1
mkdir "$W/p" && cd "$W/p" || exit 1
git init -q . && git config user.name a && git config user.email a@b
for ((i = 0; i < 1000; i++)); do printf '%d\n' $i >"f$i"; done
git add -A && git commit -qm one || exit 1
# Both through a shell: spawn_times divides its words at "--", which efr-sbx git needs.
printf '#!/bin/sh\nexec git -C "%s" "$@" >/dev/null\n' "$W/p" >"$W/alone"
printf '#!/bin/sh\nexec "%s" git --root "%s" -- "$@" >/dev/null\n' "$EFR_SBX" "$W/p" >"$W/domain"
chmod 755 "$W/alone" "$W/domain"
config=(config --file .git/config --list --no-includes -z)
"$W/spawn_times" "$ROUNDS" \
    "git config --list" "$W/alone" "${config[@]}" -- \
    "the same as efr-sbx git" "$W/domain" "${config[@]}" -- \
    "git ls-files, 1000 files" "$W/alone" ls-files -s -z -- \
    "ls-files as efr-sbx git" "$W/domain" ls-files -s -z
