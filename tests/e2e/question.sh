#!/usr/bin/env bash
# cautious, in a real terminal: a shell line asks; y runs it in the hidden zsh, n does not; keys typed
# before the card never answer it; one zsh serves all calls (a variable set in call 1 is read in call 2). auto, in a
# pipe: an export, a function, an alias and the directory of call 1 are there in call 2; a plain variable is not.
. "$(dirname "$0")/lib.sh"
new_home
config cautious
model <<'EOF'
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if request.call == 0 then return shell("marker=from-call-1; print first-$((20+22))") end
  if request.call == 1 then
    if not block.output:find("first-42", 1, true) then return { text = "WRONG 1: " .. block.output } end
    return shell("print second $marker")
  end
  if request.call == 2 then
    if not block.output:find("second from-call-1", 1, true) then
      return { text = "WRONG 2: " .. block.output }
    end
    return shell("touch never-made")
  end
  if block.is_error and block.output:find("denied", 1, true) then return { text = "denied as expected" } end
  return { text = "WRONG 3: " .. block.output }
end
EOF
terminal
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'
mark
type_line ', do the three things'
see 'y allow'
see 'first-\$\(\(20\+22\)\)'
mark
keys y
see 'allowed'
see 'second \$marker'
see 'y allow'
mark
keys y
see 'touch never-made'
see 'y allow'
mark
keys n
see 'denied as expected'
see 'done in'
[[ ! -e $P/never-made ]] || fail 'a denied call ran'
mark
type_line 'print back-$((1+1))'
see 'back-2'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_resolved'")" 3 'answers'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'shell_started'")" 1 'hidden shells'

# The same for contained calls, whose shells are many: what comes back is carried over.
config auto
mkdir -p "$P/sub"
model <<'EOF'
local FIRST = [[export EXPORTED="one two"; plain=lost; greet() { print "hello $1"; }
alias shout='print -r -- SHOUT'; cd sub; print set-$((20+22))]]
local SECOND = [[print -r -- "[$EXPORTED][$plain][${PWD##*/}]"; greet you; shout it]]
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if request.call < 2 then
    return { calls = { { name = "shell", input = { command = ({ FIRST, SECOND })[request.call + 1] } } } }
  end
  return { text = "got " .. block.output }
end
EOF
stop_daemon
cd "$P"
project
got=$(efr new -- carry)
contains "$got" '\[one two\]\[\]\[sub\]' 'an export, no plain variable, the directory'
contains "$got" '^hello you$' 'a function'
contains "$got" '^SHOUT it$' 'an alias'
