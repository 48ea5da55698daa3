#!/usr/bin/env bash
# Formats and static checks by public tools: clang-format, luacheck, shellcheck, shfmt, zsh -n, mandoc,
# codespell, and a few texts that a grep can judge. Not covered: layers, sizes, stubs (the .lua files).
set -uo pipefail
cd "$(dirname "$0")/../.."
bad=0
# check NAME COMMAND...: runs it, and shows its output when it fails.
check() {
    local name=$1 out
    shift
    if ! out=$("$@" 2>&1); then
        printf '== %s\n%s\n' "$name" "$(head -n 40 <<<"$out")"
        bad=1
    fi
}
# refuse NAME PATTERN PATH...: no line of the tree may match.
refuse() {
    local name=$1 pattern=$2 out
    shift 2
    if out=$(grep -rnIE --exclude-dir=corpus -e "$pattern" "$@"); then
        printf '== %s\n%s\n' "$name" "$(head -n 20 <<<"$out")"
        bad=1
    fi
}
mapfile -t c < <(find host sbx cli tests -name '*.[ch]')
mapfile -t sh < <(
    find tests .ci -name '*.sh' ! -path '*/demo/project/*'
    printf '%s\n' dev .ci/run
)
mapfile -t zsh < <(find zsh -type f)
check clang-format clang-format --dry-run -Werror "${c[@]}"
check luacheck luacheck -q --no-color lua cli spec tests
check shellcheck shellcheck -x "${sh[@]}"
check shfmt shfmt -d -i 4 -ci "${sh[@]}"
for file in "${zsh[@]}"; do
    check "zsh -n $file" zsh -n "$file"
done
check mandoc mandoc -T lint -W style docs/man/*.1
check codespell codespell -q 3 README.md docs lua cli host sbx zsh spec tests dev
# A descriptor is CLOEXEC from birth; clang-tidy does not see these.
out=$(grep -rnE '[^_a-z.>](socket|accept)\(' host sbx cli --include=*.c | grep -vE 'SOCK_CLOEXEC|/gen/|^[^:]*:[0-9]*: \*') && {
    printf '== socket or accept without SOCK_CLOEXEC\n%s\n' "$out"
    bad=1
}
refuse 'a tag without an issue' '(TODO|FIXME)([^(]|$)' host sbx cli lua zsh --include=*.c --include=*.h --include=*.lua --include=*.zsh
refuse 'sleep in a test' '^ *sleep +[0-9]' tests/e2e tests/zsh --include=*.sh
exit $bad
