#!/usr/bin/env bash
# Also as root.
# A hidden shell that is no zsh (shell.program): lines run there with their own output, status and directory where
# the user's rule about any line lets them; a call in the sandbox is refused and runs nothing. Not covered: start-up
# files that execute another shell, interrupts, other refusals (spec/shell/unmarked_spec.lua), what asks without the
# rule (spec/conv/decide_spec.lua).
. "$(dirname "$0")/lib.sh"
new_home
config cautious
printf '[shell]\nprogram = "/bin/bash"\n' >>"$HOME/.config/efr/config.toml"
printf '[[permissions.rules]]\naction = "execute"\nresource = "any"\neffect = "allow"\n' >>"$HOME/.config/efr/config.toml"
model <<'EOF'
local function output(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  return block.kind == "tool_result" and block.output or ""
end
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
return function(request)
  local text = request.messages[#request.messages].content
  local o, n = output(request), request.call
  if text[#text].kind == "text" and text[#text].text:find("once", 1, true) then
    return shell("echo hi >once; echo hi")
  elseif o:find("efr's integration", 1, true) then
    return { text = "refused" }
  elseif o == "" or n == 0 then
    return shell("x=kept; echo ${BASH_VERSION:+bash}; cd /usr; (exit 7)")
  elseif o:find("bash\n[exit code 7, cwd /usr]", 1, true) then
    return shell("echo $x")
  elseif o:find("kept\n[exit code 0, cwd /usr]", 1, true) then
    return { text = "both were right" }
  end
  return { text = "SAW: " .. o }
end
EOF
cd "$P"
project
out=$(efr send -- go 2>"$T/err") || fail "$(cat "$T/err")"
equals "$out" 'both were right' 'what the model saw'

out=$(efr new --mode auto -- once 2>"$T/err") || fail "$(cat "$T/err")"
equals "$out" refused 'the call in the sandbox'
[[ ! -e $P/once ]] || fail 'a contained line ran in another shell'
