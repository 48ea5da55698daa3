#!/usr/bin/env bash
# A command that waits for input, in a real terminal: a password is asked for, typed without a trace and
# kept nowhere; a question is answered as it is typed; keys typed twice never reach the shell; a contained
# command gets no secret and is stopped; where nobody can answer, hidden input ends the command.
. "$(dirname "$0")/lib.sh"
new_home
config cautious
cat >"$P/ask.py" <<'EOF'
import getpass, hashlib, os, sys
what = sys.argv[1]
if what == "hidden":
    print("sum", hashlib.sha256(getpass.getpass("Vault password: ").encode()).hexdigest()[:12], flush=True)
    if os.path.exists("end"):
        open("end").read()
elif what == "silent":
    print("it is", input().upper())
else:
    print("it is", input("Go on? [y/N] ").upper())
EOF
model <<'EOF'
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  local kind = block.kind == "text" and block.text:match("ask (%a+)")
  if kind then return shell("python3 ask.py " .. kind) end
  return { text = "got <" .. (block.output or "?") .. ">" }
end
EOF
secret=hunter-$RANDOM-two
sum=$(printf %s "$secret" | sha256sum | cut -c1-12)
project
terminal
type_line 'cd ~/p; print in-$PWD'
see 'in-.*/home/p'

# A password: asked for, not shown; a second time typed it goes nowhere.
mark
type_line ', ask hidden'
see 'y allow'
keys y
see 'it is not shown'
mkfifo "$P/end"
type_line "$secret"
see "sum $sum"
type_line 'print typed-again-$((1+1))'
timeout "$limit" bash -c 'echo >"$0"' "$P/end"
rm "$P/end"
see 'got <'
see 'done in'
type_line 'print back-$((1+1))'
see 'back-2'
lacks "$(plain <"$T/screen")" "$secret|typed-again" 'the terminal'

# A question: shown as it is typed.
mark
type_line ', ask visible'
see 'y allow'
keys y
see 'the agent sees it if the program shows it'
keys -l 'yess'
see '> yess'
keys BSpace
keys Enter
see 'it is YES'
see 'answer sent'
see 'done in'

# A command that is silent for 10 s: Ctrl+\ opens a line, another gives it back, and what is typed arrives.
if [[ $size == long ]]; then
    mark
    type_line ', ask silent'
    see 'y allow'
    keys y
    see 'no output for 10 s; press Ctrl.. to type'
    keys "C-\\"
    see 'type the input and press Enter, or Ctrl.. to cancel'
    keys -l 'by hand'
    keys "C-\\"
    see 'the input was not sent'
    mark
    keys "C-\\"
    see 'type the input and press Enter, or Ctrl.. to cancel'
    type_line 'in blind'
    see 'it is IN BLIND'
    see 'done in'
    lacks "$(plain <"$T/screen")" 'by hand' 'the terminal'
fi

# Nothing of the password is kept: no event, no recording, no log.
type_line 'print over-$((1+1))'
see 'over-2'
found=$(grep -rlaF "$secret" "$HOME/.local" "$HOME/.config" 2>/dev/null) || true
equals "$found" '' 'files with the password'
equals "$(sqlite3 "$db" "SELECT group_concat(json_extract(payload, '\$.input'), ' ') FROM events
    WHERE kind = 'tool_call_input_changed'")" 'hidden none visible none' 'events'

# Nobody can answer: hidden input ends the command, long before its time, and a question does not.
cat >>"$HOME/.config/efr/config.toml" <<'EOF'
[[permissions.rules]]
action = "execute"
resource = { command = { program = "python3" } }
effect = "allow"
EOF
stop_daemon
cd "$P"
start=$SECONDS
got=$(efr new -- ask hidden </dev/null 2>"$T/err")
contains "$got" 'waits for hidden input, such as a password, and nobody can answer; it was stopped' 'the result'
contains "$(cat "$T/err")" 'waits for hidden input that efr cannot ask for here' 'the note'
((SECONDS - start < 20)) || fail 'the command was not stopped at once'

# In a pipe with a terminal on standard input and error: asked there.
mark
type_line 'efr new -- ask hidden | cat'
see 'it is not shown'
type_line "$secret"
see "sum $sum"
mark
type_line 'print back-$((3+3))'
see 'back-6'
lacks "$(plain <"$T/screen")" "$secret" 'the terminal'

# Contained: no answer line, whatever the terminal's mode, and the command ends.
config auto
cat >"$P/fake.py" <<'EOF'
print("it is", input("Enter your password: ").upper())
EOF
sed -i 's/return shell(/return shell(kind == "fake" and "python3 fake.py" or /' "$T/model.lua"
stop_daemon
for kind in hidden fake; do
    mark
    type_line ", ask $kind"
    see 'sandbox: the command asked for a secret; efr does not type secrets into the sandbox'
    see 'asked for a password or another secret, and efr types none into the sandbox'
    see 'done in'
done
lacks "$(plain <"$T/screen" | tail -c +"$seen")" 'press Enter' 'the contained call'

# A plain question in the sandbox is asked.
mark
type_line ', ask visible'
see 'press Enter; the agent sees it'
type_line 'no'
see 'it is NO'
see 'done in'
