#!/usr/bin/env bash
# Also as root.
# `efr send` in a pipe: the daemon starts on demand, the reply is on standard output alone, the
# conversation is kept and shown as typed, SIGTERM ends the daemon clean. Not covered: terminals.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local text = last.content[#last.content].text
  return { text = "you said: " .. text, chunk = 3 }
end
EOF

cd "$P"
prompt=$'it\'s "quoted" *.c !! # $(x) `y` \\n\nsecond row \xc3\xa9'
out=$(EFR_PROMPT=$prompt efr send 2>"$T/err")
equals "$out" "you said: $prompt" "reply"
contains "$(cat "$T/err")" 'done in' 'the end line'

out=$(efr send -- two words)
equals "$out" 'you said: two words' 'words of the command line'
out=$(efr status)
contains "$out" '^daemon +efrd [0-9.]+, protocol 1, pid [0-9]+' status
contains "$out" '^conversations +2$' status
contains "$out" 'sandbox +ready' status

out=$(efr history)
contains "$out" "it's \"quoted\" \*\.c !! # " 'history list'
id=$(awk 'NR == 2 { print $1 }' <<<"$out")
out=$(efr history "${id:0:13}" || efr history "$id")
contains "$out" 'second row é' 'history of one conversation'
contains "$out" "^> it's " 'the prompt in the history'

out=$(efr paths)
contains "$out" "daemon.sock +$run/daemon.sock" paths

# A prompt that is no word of the line and no variable: standard input.
out=$(printf '%s\n\n' "$prompt" | efr send)
equals "$out" "you said: $prompt" 'a prompt on standard input'
rc=0
efr send </dev/null 2>"$T/err" || rc=$?
equals "$rc" 2 'exit of an empty prompt'
contains "$(cat "$T/err")" 'the prompt is empty' 'an empty prompt'
rc=0
head -c 4194305 /dev/zero | tr '\0' a | efr send 2>"$T/err" || rc=$?
equals "$rc" 2 'exit of a prompt that is too long'
contains "$(cat "$T/err")" 'longer than 4194304 bytes' 'a prompt that is too long'

# Usage and refusals name what is wrong.
rc=0
efr send -- '' 2>"$T/err" || rc=$?
equals $rc 2 'status of an empty prompt'
rc=0
EFR_MODE=nonsense efr send -- hi 2>"$T/err" || rc=$?
equals $rc 2 'status of an unknown mode'
contains "$(cat "$T/err")" 'manual.*cautious.*auto' 'the choices'

# A reader that went away: the status of SIGPIPE, and not a word.
mkfifo "$T/pipe"
# shellcheck disable=SC2094 # a fifo: the writer needs a reader to be opened
exec 7<>"$T/pipe" 8>"$T/pipe" 7>&-
rc=0
efr history >&8 2>"$T/err" || rc=$?
exec 8>&-
equals "$rc" 141 'exit without a reader'
equals "$(cat "$T/err")" '' 'what it says without a reader'

# The database holds what was acknowledged; the daemon leaves nothing behind.
stop_daemon TERM
[[ ! -e $run/daemon.sock && ! -e $run/daemon.json ]] || fail 'the socket or daemon.json stayed'
equals "$(sqlite3 "$db" 'PRAGMA integrity_check')" ok 'database'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'turn_completed'")" 3 'ended turns'
out=$(efr history)
equals "$(wc -l <<<"$out")" 3 'conversations after a restart'
