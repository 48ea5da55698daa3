#!/usr/bin/env bash
# Also as root.
# A registered project, a write root or the project itself on a mount whose server is gone: a contained call is refused
# in seconds and names it, efrd answers others meanwhile, and it ends when it is told to. The dead mount needs root and
# /dev/fuse; an ordinary user sees the same places answer. Not covered: a mount that dies after the look.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'LUA'
return function(request)
  if request.call == 0 then return { calls = { { name = "shell", input = { command = "echo ran-$((40+2))" } } } } end
  local last = request.messages[#request.messages]
  return { text = "seen: " .. tostring(last.content[#last.content].output) }
end
LUA
cd "$P"
project
stop_daemon # one that sees the mount starts later
mkdir "$HOME/dead" "$HOME/dead/p"
if [[ $(id -u) != 0 ]]; then
    sandbox_key "write_roots = [\"$HOME/dead/p\"]"
    contains "$(efr new -- go 2>&1)" '^seen: .*ran-42' 'a call with roots that answer'
    exit 0
fi

export tests run HOME P log
export -f sandbox_key
# shellcheck disable=SC2016
out=$(unshare --mount timeout -s KILL 100 bash -euc '
    pid() { sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p" "$run/daemon.json"; }
    end() { local p; p=$(pid); kill "$p"; python3 "$tests/e2e/gone.py" 30 "$p" && echo "ended after $1"; }
    coproc DEAD { exec python3 "$tests/e2e/dead_mount.py" "$HOME/dead"; }
    read -r word <&"${DEAD[0]}" && [[ $word == ready ]] || exit 99
    rc=0; timeout 1 stat "$HOME/dead/p" >/dev/null 2>&1 || rc=$?; echo "control $rc"
    printf "[[projects]]\nid = \"01a22e1f-80f5-7bd6-a18b-0f2d1d675250\"\nroot = \"%s\"\n" "$HOME/dead/p" >>"$HOME/.config/efr/projects.toml"
    timeout -s KILL 15 efr run -- echo ran 2>&1 | sed "s/^/run: /" || :
    timeout -s KILL 15 efr new -- go 2>&1 | sed "s/^/turn: /" || :
    timeout -s KILL 5 efr status | grep ^sandbox | sed "s/^/status: /"
    timeout -s KILL 15 efr run --write "$HOME/dead/p" -- echo ran 2>&1 | sed "s/^/write: /" || :
    end "a dead project"
    sed -i "/^\[\[projects\]\]/,\$d" "$HOME/.config/efr/projects.toml"; efr project add "$P" >/dev/null
    sandbox_key "write_roots = [\"$HOME/dead/p\"]"
    timeout -s KILL 30 efr sandbox check | sed -n "s/^auto: /check: /p"
    timeout -s KILL 15 efr run -- echo ran 2>&1 | sed "s/^/root: /" || :
    end "a dead write root"' 2>&1) || fail "with a dead mount: $out"
contains "$out" '^control 124$' 'the mount is dead'
contains "$out" "^run: .*$HOME/dead/p does not answer" 'efr run beside a dead project'
contains "$out" "^turn: .*$HOME/dead/p does not answer" 'a turn beside a dead project'
contains "$out" '^status: sandbox +ready' 'status beside a dead project'
contains "$out" "^write: .*$HOME/dead/p does not answer" 'a grant in a dead mount'
contains "$out" '^ended after a dead project$' 'efrd ends'
contains "$out" "^check: unavailable: roots: $HOME/dead/p does not answer" 'check with a dead write root'
contains "$out" "^root: .*$HOME/dead/p does not answer" 'efr run with a dead write root'
contains "$out" '^ended after a dead write root$' 'efrd ends'
