#!/usr/bin/env bash
# A command that was left running in the hidden shell, and its terminal, over the protocol: the events of its
# beginning and end, what the next call and the next prompt say, shell.status and shell.interrupt, pty.attach with
# bytes, with pictures and from an offset, keys for vi, sizes; what is refused: keys for the sandbox and for the
# shell itself, an interrupt while a call waits, a size from nowhere; a shell inside the hidden one. Not covered: `efr shell` (tests/zsh/shell.sh).
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'LUA'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "tool_result" then return { text = "result: " .. block.output } end
  local how, line = block.text:match("^(%l+) (.*)$")
  if how == "nest" then
    return { calls = { { name = "shell", input = { nested_shell = true, command = line } } } }
  elseif how ~= "run" and how ~= "leave" then return { text = last.content[1].text } end
  local seconds = how == "leave" and 1 or 60
  return { calls = { { name = "shell", input = { timeout_seconds = seconds, command = line } } } }
end
LUA
project
efr status >/dev/null
python3 "$tests/e2e/shell_command.py" "$run/daemon.sock" "$P"
