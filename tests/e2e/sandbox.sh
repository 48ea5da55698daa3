#!/usr/bin/env bash
# Also as root.
# Where the sandbox works and where it cannot: `efr sandbox check` and `explain` without a daemon; a
# machine that refuses user namespaces (auto runs as cautious, said once, nothing runs outside by
# itself); a launcher that is lost while efrd runs; a runtime root that is noexec; a dead mount below
# the home directory. Not covered: each check of the self-test (sbx/selftest.sh), other kernels
# (./dev test-kernels).
. "$(dirname "$0")/lib.sh"
new_home
unset EFR_SBX_BACKEND # both are looked at here
config auto
mkdir -p "$HOME/.ssh" "$HOME/notes" "$P/.git/hooks"
printf 'SECRET-KEY\n' >"$HOME/.ssh/id_test"
printf 'KEY=1\n' >"$P/.env"
cd "$P"

# --- without a daemon
out=$(efr sandbox check) || fail "efr sandbox check: $out"
[[ -z $(daemon_pid) ]] || fail 'efr sandbox check started a daemon'
contains "$out" '^ok    unix_socket: no connect to a socket of the host \(socket broker' 'check'
contains "$out" '^ok    backend native, Landlock ABI [0-9]+, socket broker$' 'check'
contains "$out" '^auto: ready$' 'check'
lacks "$out" '^(fail|skip +(tty|mask))' 'check'
out=$(efr sandbox check --abi 2 --json) || fail "check --abi 2: $out"
equals "$(python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["available"], d["landlock_abi"], len(d["checks"]), {c["outcome"] for c in d["checks"]} == {"ok"})' <<<"$out")" \
    'True 2 24 True' 'check --abi 2 --json'
out=$(efr sandbox check --abi 1) && fail "check --abi 1 succeeded: $out"
contains "$out" '^fail  landlock: Landlock is off or too old \(ABI 1' 'check --abi 1'
contains "$out" '^      fix: a newer kernel' 'check --abi 1'
contains "$out" '^auto: unavailable: landlock: .*; turns run as cautious$' 'check --abi 1'
out=$(efr sandbox check --abi x 2>&1) && fail "check --abi x succeeded: $out"
[[ -z $(daemon_pid) ]] || fail 'efr sandbox check started a daemon'

project
out=$(efr sandbox explain .env)
contains "$out" '^ +read   no' 'explain .env'
contains "$out" 'sandbox.mask_globs' 'explain .env'
lacks "$out" 'KEY=1' 'explain .env'
contains "$(efr sandbox explain .git/hooks)" '^ +write  no; .*persistence' 'explain .git/hooks'
contains "$(efr sandbox explain a/new/file)" 'writable: the project' 'explain a new file'
contains "$(efr sandbox explain ~/.ssh/../.ssh/id_test)" 'nothing shows it' 'explain a secret'
contains "$(efr sandbox explain /proc/1/mem)" '^ +read   no' 'explain pid 1'
contains "$(efr sandbox explain --write ~/notes ~/notes/x)" 'writable: granted' 'explain a grant'
# The daemon says the same.
efr status >/dev/null
python3 - "$tests" "$run/daemon.sock" "$HOME" <<'EOF' || fail 'sandbox.explain of the daemon'
import sys
sys.path.insert(0, sys.argv[1] + "/e2e")
from client import Client
home, link = sys.argv[3], Client(sys.argv[2])
def of(path, **more):
    out = link.request("sandbox.explain", {"path": path, "cwd": home + "/p", **more})
    return out["role"], out["read"], out["write"], out["mode"], out.get("project")
p = home + "/p"
assert of(".env") == ("masked", False, False, "auto", p), of(".env")
assert of("a/new/file") == ("write_root", True, True, "auto", p)
assert of("/proc/1/mem")[:3] == ("proc", False, False)
assert of("~/notes/x")[:3] == ("read_only", True, False)
assert of("~/notes/x", write=["~/notes"])[:3] == ("granted", True, True)
assert link.request("sandbox.explain", {"path": "."})["path"] == home
link.close()
EOF
# What it says is what a call finds.
out=$(efr run -- sh -c "cat .env ~/.ssh/id_test; echo x >a && echo wrote; echo x >.git/hooks/y || echo fixed" 2>&1) || true
contains "$out" '^wrote$' 'a call'
contains "$out" '^fixed$' 'a call'
lacks "$out" 'KEY=1|SECRET' 'a call'

# efrd looks again in the background; each status waits for that a moment by itself.
status_shows() { # PATTERN WHAT
    for ((i = 0; i < 300; i++)); do
        if out=$(efr status) && grep -qE "$1" <<<"$out"; then return; fi
    done
    fail "$2: $out"
}
# The other backend: the same checks and calls; one that cannot be used is never passed over.
efr config set sandbox.backend bwrap >/dev/null
out=$(efr sandbox check) || fail "efr sandbox check with bubblewrap: $out"
contains "$out" '^ok    backend bubblewrap [0-9.]+ \(/usr/bin/bwrap\), Landlock ABI [0-9]+, socket broker$' 'bwrap'
contains "$out" '^ok    cache_write: ' 'bwrap'
contains "$out" '^warn  sandbox.backend is "bwrap"' 'bwrap'
lacks "$out" '^(fail|skip)' 'bwrap'
status_shows '^sandbox +ready \(bubblewrap [0-9.]+, Landlock ABI' 'status with bubblewrap'
out=$(efr run -- sh -c "tr '\\0' ' ' </proc/1/cmdline; echo; cat .env; echo x >b && echo wrote; echo x >.git/hooks/y || echo fixed" 2>&1) || true
contains "$out" '^/proc/self/fd/[0-9]+ inner ' 'a call through bubblewrap'
contains "$out" '^wrote$' 'a call through bubblewrap'
contains "$out" '^fixed$' 'a call through bubblewrap'
lacks "$out" 'KEY=1' 'a call through bubblewrap'
cp /usr/bin/bwrap "$HOME/bwrap"
chmod 775 "$HOME/bwrap"
efr config set sandbox.bwrap "$HOME/bwrap" >/dev/null
out=$(efr sandbox check) && fail "check with an untrusted bubblewrap succeeded: $out"
contains "$out" "^fail  bubblewrap: $HOME/bwrap (does not belong to root|can be changed by others)" 'an untrusted one'
contains "$out" '^      fix: install or update the distribution' 'an untrusted one'
out=$(efr run -- touch ran 2>&1) && fail "efr run with an untrusted bubblewrap: $out"
[[ ! -e ran ]] || fail 'it ran all the same'
efr config unset sandbox.bwrap >/dev/null
efr config unset sandbox.backend >/dev/null
status_shows '^sandbox +ready \(native' 'status with the own launcher again'

# A change of [sandbox] is looked at at once.
efr config set sandbox.enabled false >/dev/null
contains "$(efr status)" '^sandbox +unavailable: sandbox.enabled is false' 'status after a change'
efr config set sandbox.enabled true >/dev/null
contains "$(efr status)" '^sandbox +ready' 'status after a change back'

# --- the launcher is lost while efrd runs: nothing runs outside, the next turn is cautious
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind ~= "tool_result" then
    return { calls = { { name = "shell", input = { command = block.text:match("run (.*)") } } } }
  end
  return { text = "saw: " .. block.output }
end
EOF
equals "$(efr send -- 'run echo first-$((40+2)) >ran; cat ran' 2>/dev/null | grep -c first-42)" 1 'a turn in auto'
contains "$(efr status)" '^sandbox +ready \(native' 'status'
rm -f "$P/ran" "$run/bin/efr-sbx"
out=$(efr send -- 'run echo again >ran' 2>&1) || true
contains "$out" 'the sandbox could not start: the launcher.s copy .* is missing.*; nothing of it ran\]' 'the model sees it'
[[ ! -e $P/ran ]] || fail 'a call ran without its sandbox'
out=$(efr run -- true 2>&1) && fail 'efr run without a launcher'
contains "$(efr status)" '^sandbox +unavailable: the launcher.s copy .* is missing' 'status'
contains "$(efr status)" 'fix: restart efrd' 'status'
out=$(efr send -- 'run cat .git/HEAD /dev/null a' 2>&1) || true
equals "$(grep -c 'auto is not available here; this turn runs as cautious: the sandbox is not available' <<<"$out")" 1 'the fallback'
contains "$out" 'saw: ' 'the turn in cautious'
stop_daemon

# --- a machine without user namespaces and capabilities, as a container can be
refused() {
    unshare --user --map-root-user bash -c 'echo 0 >/proc/sys/user/max_user_namespaces || exit 99
        exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all "$@"' _ "$@"
}
out=$(refused efr sandbox check) && fail "check succeeded without user namespaces: $out"
contains "$out" '^fail  namespaces: the limit of namespaces is reached' 'check without user namespaces'
contains "$out" 'fix: .*user.max_user_namespaces' 'check without user namespaces'
rm -f "$P/ran"
out=$(refused efr send -- 'run cat a' 2>&1) || fail "a turn without user namespaces: $out"
equals "$(grep -c 'this turn runs as cautious: the sandbox is not available: namespaces: ' <<<"$out")" 1 'said once'
contains "$out" 'saw: x' 'a line that only reads runs without a question'
out=$(refused efr send -- 'run cat a' 2>&1) || fail "the second turn: $out"
contains "$out" 'saw: x' 'the second turn'
out=$(refused efr run -- touch ran 2>&1) && fail 'efr run without user namespaces'
[[ $? == 125 || $out == *'setup failed: namespaces'* ]] || fail "efr run: $out"
[[ ! -e $P/ran ]] || fail 'efr run ran outside of a sandbox'
contains "$(refused efr status)" '^sandbox +unavailable: namespaces: .*; auto runs as cautious' 'status'
equals "$(grep -c 'the sandbox is not available: namespaces' "$log")" 1 'logged once'
stop_daemon
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'sandbox_unavailable'")" 3 'events of a change'

# --- a launch that hangs holds neither the start nor efr status up (that it ends and is named:
# spec/sbx/probe_spec.lua)
mkdir "$T/bin"
cp "$EFR_BIN"/efr "$EFR_BIN"/efrd "$EFR_BIN"/efr-worker "$T/bin/"
printf '#!/bin/sh\nexec setpriv --pdeathsig KILL sleep 1000\n' >"$T/bin/efr-sbx"
chmod 755 "$T/bin/efr-sbx"
contains "$("$T/bin/efr" status)" '^sandbox +being checked' 'status while a launch hangs'
stop_daemon

# --- a runtime root that cannot execute programs
noexec() {
    unshare --user --map-root-user --mount bash -c 'mount -t tmpfs -o noexec,mode=700 t "$0" || exit 99
        efr status && efr run -- echo contained-$((40+2))
        kill "$(sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p" "$0/daemon.json")"' "$run"
}
out=$(noexec 2>&1)
contains "$out" '^sandbox +ready' 'a noexec runtime root'
contains "$out" 'warning: the launcher.s copy lies in .*/data.*|warning: the launcher.s copy lies in .*share' 'a noexec runtime root'
contains "$out" '^contained-42' 'a noexec runtime root'

# --- a dead mount below the home directory holds nothing up
if [[ $(id -u) == 0 ]]; then
    mkdir "$HOME/dead"
    # shellcheck disable=SC2016
    out=$(unshare --mount timeout 60 bash -c '
        coproc DEAD { exec python3 "$0/e2e/dead_mount.py" "$HOME/dead"; }
        read -r word <&"${DEAD[0]}" && [[ $word == ready ]] || exit 99
        timeout 1 stat "$HOME/dead/x" 2>&1; echo "control $?"
        efr sandbox check | tail -n 1
        efr status | grep ^sandbox
        efr run -- echo contained-$((40+2))
        end() { kill "$(sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p" "$1/daemon.json")"; }
        end "$1"; python3 "$0/e2e/gone.py" 30 "$(sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p" "$1/daemon.json")"
        printf "[[projects]]\nid = \"01a22e1f-80f5-7bd6-a18b-0f2d1d675250\"\nroot = \"%s\"\n" "$HOME/dead/p" >>"$HOME/.config/efr/projects.toml"
        efr sandbox check | sed -n "s/^auto:/check with a dead project:/p"
        efr status | sed -n "s/^sandbox/status with a dead project/p"
        end "$1"' "$tests" "$run" 2>&1) ||
        fail "with a dead mount: $out"
    contains "$out" '^control 124$' 'the mount is dead'
    contains "$out" '^auto: ready$' 'check beside a dead mount'
    contains "$out" '^sandbox +ready' 'status beside a dead mount'
    contains "$out" '^contained-42' 'a call beside a dead mount'
    contains "$out" '^check with a dead project: ready$' 'check beside a dead project'
    contains "$out" '^status with a dead project +ready' 'status beside a dead project'
else
    say 'the dead mount needs root and /dev/fuse; it is looked at where the tests run as root'
fi
