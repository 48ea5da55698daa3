#!/usr/bin/env bash
# Also as root.
# Snapshots, diff and undo with real calls in the sandbox: what a turn changed is told, shown and taken back,
# in a project without git. Not covered: how trees are made (spec/store), plans (spec/undo).
. "$(dirname "$0")/lib.sh"
new_home
config auto
cd "$P"
printf 'one\ntwo\n' >a
printf 'gone\n' >b
project

# The text of the prompt is the line that the call runs.
model <<'EOL'
return function(request)
  local last = request.messages[#request.messages]
  if last.content[1].kind == "tool_result" then return { text = "done" } end
  local text = last.content[#last.content].text
  return { calls = { { name = "shell", input = { command = text } } } }
end
EOL

out=$(efr new 'printf "one\n2\n" >a; rm b; mkdir d; echo new >d/c; echo $SCRATCH >$SCRATCH/s' 2>&1)
contains "$out" 'changed .*/p/a \+1 −1' 'the call block'
contains "$out" "\(\+1 more\)" "the call block"
contains "$out" '4 files changed' 'the end of the turn'
contains "$out" 'efr undo reverts this turn' 'the end of the turn'
out=$(efr send "cat a" 2>&1)
lacks "$out" 'changed' 'a turn that changed nothing'
