#!/bin/bash
# Work inside a call beside the same work outside: a connect through the socket broker, make -j4 of a
# small C project; and what each further root and mask adds to a launch. Run as an ordinary user and as
# root; the ratios are what counts.
# shellcheck disable=SC1091,SC2034
set -u
here=$(cd "$(dirname "$0")" && pwd)
EFR_SBX=${EFR_SBX:-${EFR_BIN:-$here/../../build/bin}/efr-sbx}
ROUNDS=${1:-7}
. "$here/../sbx/lib.sh"
world
for name in spawn_times connect_times; do
    cc -std=c11 -D_GNU_SOURCE -O1 -o "$W/bin/$name" "$here/$name.c" -lpthread || exit 1
done
cd "$W/project" || exit 1

# row NAME OUTSIDE-P50 INSIDE-P50 UNIT [OUTSIDE-P95 INSIDE-P95]
row() {
    awk -v name="$1" -v a="$2" -v b="$3" -v unit="$4" -v c="${5:-}" -v d="${6:-}" 'BEGIN {
        printf "%-44s outside %8.1f %s  inside %8.1f %s  ratio %5.2f", name, a, unit, b, unit, b / a
        if (c != "") printf "  (p95 %.1f and %.1f)", c, d
        print "" }'
}

for path in "$W/project/sock" /tmp/bench.sock @bench; do
    direct=$path
    [ "${path#/tmp}" = "$path" ] || direct=$W/outside/sock
    read -r p50 p95 <<<"$("$W/bin/connect_times" "$direct" 3000)"
    sbx "$W/bin/connect_times" "$path" 3000
    [ "$STATUS" = 0 ] || exit 1
    read -r in50 in95 <<<"$OUT"
    case $path in
        /tmp*) name="connect, socket in /tmp" ;;
        @*) name="connect, abstract socket" ;;
        *) name="connect, socket in the project" ;;
    esac
    row "$name" "$p50" "$in50" us "$p95" "$in95"
done

# 60 files that include the C library's headers.
for ((i = 0; i < 60; i++)); do
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(int x) { char b[64]; snprintf(b, sizeof b, "%%d", x); return atoi(b) + %d; }\n' $i $i >"f$i.c"
done
printf 'OBJECTS = $(patsubst %%.c,%%.o,$(wildcard f*.c))\nall: $(OBJECTS)\n\tar rcs all.a $(OBJECTS)\nclean:\n\trm -f $(OBJECTS) all.a\n' >Makefile
ms() { # CMD...: its time in ms
    local from=${EPOCHREALTIME/[.,]/}
    "$@" >/dev/null 2>&1 </dev/null || exit 1
    echo $(((${EPOCHREALTIME/[.,]/} - from) / 1000))
}
median() {
    sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
for ((i = 0; i < ROUNDS; i++)); do
    make -s clean
    ms make -sj4 >>"$W/out.times"
    make -s clean
    plan make -sj4
    ms "$EFR_SBX" run --call-dir "$CALL" >>"$W/in.times"
done
row "make -j4 of 60 C files" "$(median <"$W/out.times")" "$(median <"$W/in.times")" ms

# Launches with more and more places; the difference over their number is the cost of one.
copies() { # NAME
    mkdir "$W/call/$1"
    local i
    for ((i = 0; i < 150; i++)); do
        mkdir -m 700 "$W/call/$1/$i" && cp "$CALL/plan" "$W/call/$1/$i/plan"
    done
}
plan true
copies none
for kind in mask root; do
    MOUNTS=()
    for ((i = 0; i < 100; i++)); do
        mkdir -p "$W/home/$kind$i"
        MOUNTS+=("$kind $W/home/$kind$i")
    done
    plan true
    copies $kind
done
"$W/bin/spawn_times" 150 "efr-sbx, one root" "$EFR_SBX" run --call-dir "$W/call/none/{}" -- \
    "efr-sbx, 100 masks more" "$EFR_SBX" run --call-dir "$W/call/mask/{}" -- \
    "efr-sbx, 100 roots more" "$EFR_SBX" run --call-dir "$W/call/root/{}" | tee "$W/times"
awk '{ for (i = 1; i <= NF; i++) if ($i == "ms" && $(i + 1) == "median") v[NR] = $(i - 1) }
    END { printf "each further mask %.3f ms, each further root %.3f ms\n", (v[2] - v[1]) / 100, (v[3] - v[1]) / 100 }' "$W/times"
