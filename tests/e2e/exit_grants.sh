#!/usr/bin/env bash
# A grant opens only its own thing, for its own call: with each grant (a file, a directory, a socket, the session bus, a
# desktop socket, a hidden file, a device, the network, user namespaces) a call tries everything else of the list too,
# and the call after it has nothing of it. Not covered: the system bus (its place is the machine's), the launcher's
# own checks (tests/sbx/grants.sh).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
. "$(dirname "$0")/lib_exits.sh"
exits_model
export XDG_RUNTIME_DIR=$T/rt
mkdir -m 700 "$XDG_RUNTIME_DIR"
run=$XDG_RUNTIME_DIR/efr
mkdir -p ~/notes ~/dir ~/.ssh ~/.aws ~/.kube ~/bin
for f in ~/file ~/other ~/notes/a ~/dir/file; do : >"$f"; done
for f in ~/.ssh/id ~/.aws/config ~/.kube/config; do echo SECRET >"$f"; done
cp "$tests/e2e/exit_grants.py" "$P/try.py"
python3 - "$T" ~/s1 ~/s2 "$XDG_RUNTIME_DIR"/{bus,sway-ipc.1.sock,other} <<'EOT' >/dev/null 2>&1 &
import select, signal, socket, sys
signal.alarm(600)
listening = [socket.socket(socket.AF_UNIX) for _ in sys.argv[2:]] + [socket.socket()]
for s, path in zip(listening, sys.argv[2:]): s.bind(path)
listening[-1].bind(("127.0.0.1", 0))
for s in listening: s.listen()
with open(sys.argv[1] + "/port", "w") as f: f.write("%d\n" % listening[-1].getsockname()[1])
while True:
    for s in select.select(listening, [], [])[0]: s.accept()[0].close()
EOT
server=$!
python3 "$tests/e2e/until.py" "$limit" '^\d+$' cat "$T/port" || fail 'no server'
port=$(<"$T/port")
# Behind two names: a script, so that the line shows nothing of what it does, and a program that controls the desktop.
printf '#!/bin/sh\nexec python3 try.py %s\n' "$HOME $XDG_RUNTIME_DIR $port /dev/autofs /dev/kmsg" >"$P/try.sh"
line='sh try.sh'
cp "$P/try.sh" ~/bin/swaymsg
chmod 755 ~/bin/swaymsg
printf 'path=(~/bin $path)\n' >>"$HOME/.zshrc"
cd "$P"
project
efr status >/dev/null

# opens NAMES LINE: with a yes a call can reach the project and these things, and nothing else of the list.
opens() {
    ask allow "$2"
    # shellcheck disable=SC2086
    equals "$(value 'sorted(x[5:] for x in e["tool_call_completed"]["output"].split("\n") if x.startswith("open "))')" \
        "$(python3 -c 'import sys; print(sorted(sys.argv[1:]))' project $1)" "$2"
    value 'len([x for x in e["tool_call_completed"]["output"].split("\n") if x.startswith("closed ")])' >"$T/closed"
    [[ $(<"$T/closed") -ge 10 ]] || fail "only $(<"$T/closed") things were closed"
    say "$(<"$T/closed") stay closed beside: ${1:-nothing}"
    rm -f ~/notes/new ~/new
}
opens '' "$line"
is '"approval_requested" in e' False
nl=$'\n'
opens 'file' "$line${nl}needs write=~/file"
opens 'notes new-in-notes' "$line${nl}needs write=~/notes/a"
is 'e["approval_requested"]["exit"]["grants"][0]["path"][-6:]' /notes
opens 'socket' "$line${nl}needs sockets=~/s1"
opens 'network' "$line${nl}needs hosts=localhost:$port"
opens 'bus' "$line${nl}needs bus=session"
if [[ $size == long ]]; then
    opens 'dir' "$line${nl}needs write=~/dir"
    opens 'hidden' "$line${nl}needs unmask=~/.aws/config"
    opens 'device' "$line${nl}needs device=/dev/autofs"
    opens 'namespaces' "$line${nl}needs userns=true"
fi
SWAYSOCK=$XDG_RUNTIME_DIR/sway-ipc.1.sock opens 'sway' 'swaymsg -t get_tree'
is 'e["exit_requested"]["kinds"]' "['desktop_ipc']"
opens '' "$line"

# What is not there is no grant: the call does not run, and its result says what is missing.
ask allow 'swaymsg -t get_tree'
contains "$(output)" 'efr found no sway session in the terminal of this prompt'
SWAYSOCK=$XDG_RUNTIME_DIR/bus ask allow 'swaymsg -t get_tree'
contains "$(output)" 'efr found no sway session'
ask allow "$line${nl}needs sockets=~/none"
contains "$(output)" 'nothing to grant'
lacks "$(output)" '^open' 'a call with a socket that is not there'
ask allow "$line${nl}needs unmask=~/.ssh/id"
is 'e["tool_call_completed"]["refusal"]["kind"]' floor
kill "$server"
