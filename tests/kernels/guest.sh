#!/bin/bash
# guest.sh: what runs in each booted kernel, as its first process: the probe as root and as an ordinary
# user, with yama.ptrace_scope 0 and 1, then the tests of the sandbox. Prints `guest: all passed` last,
# or what failed, and restarts the machine, which ends qemu.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/root LC_ALL=C.UTF-8 LANG=C.UTF-8
export EFR_SBX_ATTACKERS=/efr/attackers
export EFR_SOURCE=/efr EFR_BUILD=/efr/build EFR_BIN=/efr/build/bin EFR_TEST_SIZE=ci
exec </dev/null
cd /efr || exit
failed=0
passed=0
tests=0

result() { # NAME STATUS: reads the output from standard input
    local name=$1 status=$2 out
    out=$(cat)
    passed=$((passed + $(grep -c '^ok - ' <<<"$out")))
    tests=$((tests + 1))
    if [[ $status == 0 ]]; then
        printf 'pass  %s (%s checks, %s s)\n' "$name" "$(grep -c '^ok' <<<"$out")" "$((SECONDS - begun))"
        return
    fi
    failed=$((failed + 1))
    printf 'FAIL  %s (status %s)\n' "$name" "$status"
    grep -v '^ok - ' <<<"$out" | tail -n 30
}

run() { # NAME COMMAND...
    local name=$1 status=0
    shift
    begun=$SECONDS
    timeout 1200 "$@" >/run/out 2>&1 || status=$?
    result "$name" "$status" </run/out
}

as_user=(setpriv --reuid=12345 --regid=12345 --clear-groups env HOME=/home/user USER=user)

# All tests, or those of the kernel's command line: efr.tests=NAME,NAME
names=()
for file in tests/sbx/*.sh; do
    [[ $file == */lib*.sh ]] || names+=("$(basename "$file" .sh)")
done
wanted=$(grep -o 'efr.tests=[^ ]*' /proc/cmdline)
[[ -z $wanted ]] || IFS=, read -r -a names <<<"${wanted#efr.tests=}"

printf 'guest: Linux %s, Landlock ABI %s\n' "$(uname -r)" "$(build/bin/efr-sbx landlock-abi)"
for scope in 0 1; do
    echo $scope >/proc/sys/kernel/yama/ptrace_scope || failed=1
    run "efr sandbox check, root, ptrace_scope=$scope" build/bin/efr sandbox check
    run "efr sandbox check, user, ptrace_scope=$scope" "${as_user[@]}" build/bin/efr sandbox check
    ((scope == 0)) && sed -n '/^ok    backend/p;/^ok    launch/p' /run/out
done

# With scope 1 those whose means or subject is ptrace; then all with scope 0.
for name in $(comm -12 <(printf '%s\n' own_sockets selftest surface) <(printf '%s\n' "${names[@]}" | sort)); do
    run "sbx.$name, ptrace_scope=1" bash "tests/sbx/$name.sh"
done
echo 0 >/proc/sys/kernel/yama/ptrace_scope
for name in "${names[@]}"; do
    [[ -e tests/sbx/$name.sh ]] || continue # memory, apparmor
    run "sbx.$name" bash "tests/sbx/$name.sh"
done

# Limits that need a cgroup: by name, or with all tests.
if [[ -z $wanted || ,${wanted#efr.tests=}, == *,memory,* ]]; then
    run "a call's limit of memory" bash tests/kernels/memory.sh
fi

# The other backend where a profile denies capabilities: by name, or with all tests.
if [[ -z $wanted || ,${wanted#efr.tests=}, == *,apparmor,* ]] && [[ $(uname -r) == 6.12* ]]; then
    run "bubblewrap under AppArmor" bash tests/kernels/apparmor.sh
fi

printf 'guest: %d checks in %d tests, %d tests failed, %d s\n' "$passed" "$tests" "$failed" "$SECONDS"
((failed == 0)) && echo 'guest: all passed'
sync
echo b >/proc/sysrq-trigger # qemu ends at a restart
read -r _ </dev/ttyS0       # the first process must not end
