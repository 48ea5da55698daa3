#!/usr/bin/env bash
# Ctrl+C in a terminal stops a running contained call with all its processes and ends the turn, also one that
# ignores signals and one whose shell has functions for them from an earlier call; the next prompt of the same
# conversation works. Not covered: Esc and the input row (a later issue).
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "text" and block.text:find("trap") then
    return { calls = { { name = "shell", input = { command =
      "TRAPINT() { print swallowed; return 0 }; TRAPQUIT() { return 0 }; TRAPTERM() { return 0 }" } } } }
  elseif block.kind == "tool_result" and request.call == 1 then
    return { calls = { { name = "shell", input = { timeout_seconds = 600, command =
      "whence -w TRAPINT; print trapped-$((40+2)); while :; do sleep 4245; done" } } } }
  elseif block.kind == "text" and block.text:find("sleep") then
    return { calls = { { name = "shell", input = { timeout_seconds = 600, command =
      "trap '' INT TERM; (setsid sleep 4242 &) ; print started-$((40+2)); sleep 4243; sleep 4244" } } } }
  end
  return { text = "alive and well" }
end
EOF
terminal
type_line 'cd ~/p && efr project add && print added-$((1+1))'
see 'added-2'
mark
type_line ', please sleep'
see 'started-42'
contains "$(leftovers)" 'sleep 424' 'the running call'
mark
keys C-c
see 'interrupted after'
mapfile -t pids < <(pgrep -u "$(id -u)" -f '^sleep 424[234]')
wait_gone "${pids[@]}"
type_line 'print status-$?'
see 'status-130'
mark
type_line ', please trap'
see 'TRAPINT: function'
see 'trapped-42'
mark
keys C-c
see 'interrupted after'
mapfile -t pids < <(pgrep -u "$(id -u)" -f '^sleep 4245')
wait_gone "${pids[@]}"
mark
type_line ', are you there'
see 'alive and well'
equals "$(sqlite3 "$db" "SELECT count(*) FROM conversations")" 1 conversations
equals "$(sqlite3 "$db" "SELECT group_concat(status) FROM (SELECT status FROM turns ORDER BY queued_seq)")" \
    interrupted,interrupted,completed 'turns'
