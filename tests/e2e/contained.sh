#!/usr/bin/env bash
# Also as root.
# auto: the model's shell calls run in the sandbox and give their real output; writes outside are
# stopped; file tools work; the turn says what it changed. The scripted model decides from the results,
# so a wrong result ends in another text. Not covered: every row of surface.md (tests/sbx).
. "$(dirname "$0")/lib.sh"
new_home
config auto
mkdir -p "$HOME/.ssh"
printf 'SECRET-KEY\n' >"$HOME/.ssh/id_test"
printf 'kept\n' >"$HOME/outside"
printf 'one\ntwo\n' >"$P/a.txt"
model <<'EOF'
local function result(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  return block.kind == "tool_result" and block or { output = "" }
end
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
local steps = {
  function() return shell("echo out-$((40+2)); echo err >&2; exit 7") end,
  function(r)
    if not (r.output:find("out-42", 1, true) and r.output:find("err", 1, true)
      and r.output:find("exit code 7", 1, true) and r.is_error) then return { text = "WRONG 1: " .. r.output } end
    return shell("F=outside; echo hacked > ~/$F; echo code=$?; cat ~/outside; D=ssh; cat ~/.$D/id_test; echo end")
  end,
  function(r)
    if not r.output:find("code=1", 1, true) or not r.output:find("kept", 1, true)
      or not r.output:find("read%-only file system") or r.output:find("SECRET-KEY", 1, true) then
      return { text = "WRONG 2: " .. r.output }
    end
    return shell("mkdir -p sub && cd sub && export GREETING=hi && print made > file")
  end,
  function(r)
    if not r.output:find("exit code 0", 1, true) then return { text = "WRONG 3: " .. r.output } end
    return shell("print -r -- $GREETING $PWD; id -u; grep -c . /proc/net/dev")
  end,
  function(r)
    if not r.output:find("hi .*/p/sub\n") then return { text = "WRONG 4: " .. r.output } end
    return { calls = { { name = "read_file", input = { path = "../a.txt" } },
      { name = "edit", input = { path = "../a.txt", old_string = "two", new_string = "three" } } } }
  end,
  function(r)
    if not r.output:find("Replaced 1 match", 1, true) then return { text = "WRONG 5: " .. r.output } end
    return { text = "all five steps were right" }
  end,
}
return function(request)
  return steps[request.call + 1](result(request))
end
EOF

cd "$P"
project
out=$(efr send -- go 2>"$T/err") || fail "$(cat "$T/err")"
equals "$out" 'all five steps were right' 'what the model saw'
equals "$(cat "$HOME/outside")" kept 'the file outside'
equals "$(cat "$P/sub/file")" made 'the file in the project'
equals "$(cat "$P/a.txt")" $'one\nthree' 'the edited file'
contains "$(cat "$T/err")" '\$ echo out-' 'the call block'
contains "$(cat "$T/err")" 'exit 7' 'the result row'
contains "$(cat "$T/err")" '2 files changed, \+2 .1' 'what the turn changed'
equals "$(git -C "$HOME" status 2>/dev/null | wc -l)" 0 'no stray repository'

# No project: writes in the directory are refused; $SCRATCH and /tmp work.
mkdir "$HOME/other"
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if request.call == 0 then
    return { calls = { { name = "shell", input = {
      command = "n=here; echo x > $n; echo code=$?; echo y > $SCRATCH/f && cat $SCRATCH/f; echo z > /tmp/t && cat /tmp/t" } } } }
  end
  local o = block.output
  return { text = (o:find("code=1", 1, true) and o:find("\ny\nz", 1, true)) and "right" or ("WRONG: " .. o) }
end
EOF
cd "$HOME/other"
equals "$(efr send -- go)" right 'outside a project'
[[ ! -e $HOME/other/here && ! -e /tmp/t ]] || fail 'a write left the sandbox'
