#!/usr/bin/env bash
# Also as root.
# auto: calls in the sandbox have the functions, aliases and options of the hidden shell, so those of the user's
# start-up files; what a call defines stands before them in the next, and never reaches the hidden shell. Not
# covered: what direct calls define, odd names and options (spec/shell/child_spec.lua).
. "$(dirname "$0")/lib.sh"
new_home
config auto
cat >>"$HOME/.zshrc" <<'RC'
greet() { print -r -- "hello $1" }
alias hi='greet from'
setopt extended_glob
git() { print fake }
RC
model <<'EOF'
local function output(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  return block.kind == "tool_result" and block.output or ""
end
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
local steps = {
  function() return shell("hi alias; [[ aab == a#b ]] && print glob; whence -w git") end,
  function(o)
    if not o:find("hello from\nglob\ngit: command\n", 1, true) then return { text = "WRONG 1: " .. o } end
    return shell("greet() { print changed }; alias extra='print more'; unalias hi")
  end,
  function() return shell("greet; extra; print hi-${+aliases[hi]}") end,
  function(o)
    if not o:find("changed\nmore\nhi-0\n", 1, true) then return { text = "WRONG 2: " .. o } end
    return { text = "all three were right" }
  end,
}
return function(request)
  return steps[request.call + 1](output(request))
end
EOF
cd "$P"
project
out=$(efr send -- go 2>"$T/err") || fail "$(cat "$T/err")"
equals "$out" 'all three were right' 'what the model saw'
