#!/usr/bin/env bash
# ./dev bench: every row, as ratios to public tools in one run. Times never fail a test; they stand here.
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
export EFR_BIN=$build/bin EFR_LUA=$build/test/efr-lua EFR_BUILD=$build EFR_SOURCE=${here%/tests/bench}
for script in "$here"/*.sh; do
    [[ ${script##*/} == run.sh ]] && continue
    bash "$script"
done
for script in "$here"/*.lua; do
    [[ -e $script ]] || continue
    "$EFR_LUA" "$script"
done
python3 "$here/bench.py" "$build"
