#!/usr/bin/env bash
# `efr shell` and `,shell` in a real terminal: looking at what was left running, attaching to full-screen programs
# (vi, less) with keys, arrows, a resize and the key that leaves, stopping, the end of the command under the
# view; the sandbox gets no keys; a turn waits for a program that may ask while the user follows; however efr ends,
# the terminal is as it was; answers to what a program asks, with no secret on the screen or in the store.
# CI size: vi, less, answers, the sandbox. Not covered: the protocol (shell_command.sh).
. "$(dirname "$0")/lib.sh"
new_home
config cautious
model <<'LUA'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "tool_result" then
    return { text = "result: " .. (block.output:match("^[^\n]*still runs[^\n]*") or block.output) }
  end
  return { calls = { { name = "shell", input = { timeout_seconds = 1, command = block.text } } } }
end
LUA
project
# A name that efr does not know as a program that may ask: its call answers at its timeout.
printf '#!/bin/sh\nexec "$@"\n' >"$P/with"
chmod +x "$P/with"
seq -f 'line %g' 1 500 >"$P/lines"

# shows PATTERN [PANE]: until the pane's screen shows it.
shows() {
    python3 "$tests/e2e/until.py" "$limit" "$1" tmux -L "$tmux_name" capture-pane -p -t "${2:-:0}" ||
        fail "the screen never showed /$1/"
}
lines_of() { tmux -L "$tmux_name" capture-pane -p -t "${1:-:0}"; }
# has_rows N: until vi shows so many empty rows; it draws anew after a change of size.
has_rows() {
    python3 "$tests/e2e/until.py" "$limit" "^$1\$" bash -c "tmux -L $tmux_name capture-pane -p | grep -c '^~' || true"
}
leave_key=C-$'\134'
# leave LINE: a prompt whose call is allowed, and left running.
leave() {
    mark
    type_line ", $1"
    see 'y allow|allow.*deny'
    keys y
    see 'result: .the command'
    see 'done in'
}
terminal 90 30
type_line "cd ~/p && stty -g >~/before; print mo\"\"ved"
see 'moved'
type_line ',shell'
see 'this terminal has no conversation'

# ---- vi ----
leave './with vi -u NONE -N -i NONE note'
see 'still running in the hidden shell: ./with vi'
mark
type_line ',shell'
shows 'a attach . i interrupt . q leave'
contains "$(lines_of)" 'running for [0-9]+ s: ./with vi' 'the header'
keys a
shows 'Ctrl.. leaves . ./with vi'
has_rows 27 || fail 'vi does not fill the screen below the header'
keys -l 'ihello there'
shows '^hello there'
tmux -L "$tmux_name" resize-window -x 70 -y 20
has_rows 17 || fail 'vi did not follow the size'
# Ctrl+\ leaves, the look is there again, and the program lives on.
keys "$leave_key"
shows 'a attach . i interrupt . q leave'
keys a
shows 'Ctrl.. leaves . ./with vi'
# However efr ends, the terminal is as it was.
kill -TERM "$(pgrep -P "$(tmux -L "$tmux_name" display-message -p -t :0 '#{pane_pid}')" -x efr)"
type_line 'print sta""tus-$?'
see 'status-143'
[[ $(lines_of) != *'hello there'* ]] || fail 'the screen of vi is left'
mark
type_line 'stty -g >~/after; cmp ~/before ~/after && print sa""me'
see 'same'
type_line 'efr shell --attach'
shows 'Ctrl.. leaves . ./with vi'
keys Escape
keys -l ':wq'
keys Enter
see 'ended in the hidden shell: ./with vi'
equals "$(cat "$P/note")" 'hello there' 'the file that vi wrote'
tmux -L "$tmux_name" resize-window -x 90 -y 30
mark
type_line 'stty -g >~/after; cmp ~/before ~/after && print sa""me'
see 'same'

# ---- less: arrows, and interrupting from the look ----
leave './with less lines'
mark
type_line 'efr shell --attach'
shows '^line 28$'
keys Down
shows '^line 29$'
keys Up
keys G
shows '^line 500$'
keys q
see 'ended in the hidden shell: ./with less'

# ---- answers: one that shows, then a password, once wrong ----
cat >"$P/ask" <<'END'
#!/bin/sh
read -r _ <go
printf 'Name? '
read -r name
stty -echo
for try in 1 2; do
    printf 'Password: '
    read -r word
    [ "$word" = right ] && break
done
stty echo
printf '%s %s\n' "$name" "$word" >said
END
chmod +x "$P/ask"
mkfifo "$P/go"
# It asks when its call has answered.
leave './with ./ask'
echo >"$P/go"
mark
type_line ',shell'
shows 'Enter answer . a attach . i interrupt . q leave'
keys Enter
shows 'the agent sees it if the program shows it'
keys -l 'qai'
shows '> qai'
keys Enter
shows 'Enter answer . a attach . i interrupt . q leave'
shows 'Password:'
keys Enter
shows 'it is not shown'
keys -l 'wrong'
keys Enter
# The program asks again: the line is open.
shows 'Password: Password:|^Password: *$'
python3 "$tests/e2e/until.py" "$limit" 'it is not shown' tmux -L "$tmux_name" capture-pane -p || fail 'no second line'
[[ $(lines_of) != *wrong* ]] || fail 'the password is shown'
keys -l 'right'
keys Enter
see 'ended in the hidden shell: ./with ./ask'
equals "$(cat "$P/said")" 'qai right' 'what was said'
[[ -z $(sqlite3 "$db" "SELECT 1 FROM events WHERE payload LIKE '%wrong%' OR payload LIKE '%right%'") ]] ||
    fail 'a password was recorded'

# ---- the sandbox gets no keys ----
mark
type_line ',mode auto'
see 'mode = auto'
mark
type_line ', ./with vi -u NONE -N -i NONE boxed'
see 'result: .the command'
see 'done in'
type_line 'efr shell --attach'
shows 'in the sandbox: your keys are not sent'
keys -l 'ityped'
keys C-c
# vi takes the interrupt and goes on, so its launcher is ended.
see 'ended in the hidden shell: ./with vi'
[[ ! -e $P/boxed ]] || fail 'keys reached the sandbox'
[[ $(lines_of) != *typed* ]] || fail 'keys reached the sandbox'

[[ $size == long ]] || exit 0

# ---- without a terminal ----
mark
type_line ',mode cautious'
see 'mode = cautious'
leave './with sh -c "echo some text; exec sleep 4326"'
mark
type_line 'efr shell | cat; efr shell --json | grep -c running'
see "some text"
[[ $(lines_of) != *builtin* ]] || fail "what stood before the command is shown: $(lines_of)"
see '^1$'
type_line 'efr shell --attach </dev/null | cat'
see 'needs a terminal'
type_line 'efr shell --attach'
shows 'Ctrl.. leaves . ./with sh'
keys "$leave_key"
mark
type_line ',shell'
shows 'a attach . i interrupt . q leave'
keys q
mark
type_line ',shell'
shows 'a attach . i interrupt . q leave'
keys i
see 'ended in the hidden shell: ./with sh'
type_line 'efr shell --interrupt'
see 'no command runs'
mark
type_line ',shell'
see 'nothing runs in the hidden shell'

# ---- a turn waits for what may ask ----
mark
type_line ', vi -u NONE -N -i NONE note'
see 'y allow|allow.*deny'
keys y
id=$(sqlite3 "$db" "SELECT id FROM conversations")
python3 "$tests/e2e/until.py" "$limit" '"state":"running"' efr shell --conversation "$id" --json || fail 'vi does not run'
tmux -L "$tmux_name" new-window -d "env -u TMUX HOME='$HOME' PATH='$PATH' efr shell --conversation $id --attach"
shows 'Ctrl.. leaves . vi' :1
python3 "$tests/e2e/until.py" "$limit" 'running 2s|[2-9]s' tmux -L "$tmux_name" capture-pane -p -t :0 || fail 'no time passed'
tmux -L "$tmux_name" send-keys -t :1 -l ':q'
tmux -L "$tmux_name" send-keys -t :1 Enter
see 'result: .a full-screen program ran here'
see 'exit code 0'
