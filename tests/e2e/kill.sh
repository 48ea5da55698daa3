#!/usr/bin/env bash
# Also as root.
# kill -9 of efrd at random moments of a turn, most of them in a call, contained ones and ones that run outside
# after a yes: the store opens, every event that a client was shown is there, nothing of the call survives whatever
# session it made or signal it ignores, what an earlier approved call left behind lives on, the turn is recorded as
# cancelled, the next prompt works. At the end a clean stop in a call, which ends the same processes. CI size 8 moments,
# long size 50.
. "$(dirname "$0")/lib.sh"
new_home
config auto
# The lengths of the sleeps belong to this run, so that they are found among all processes.
unique=$$
model <<END
local UNIQUE = "$unique"
END
cat >>"$T/model.lua" <<'END'
-- Quick; what it leaves behind is of a call that is over.
local QUICK = "setsid -f sleep 4320.%s </dev/null >/dev/null 2>&1; print -r -- step > file"
-- Every way to stay that a line has, and then one that holds the call open.
local STAY = [[print more > file
command sleep 4321.%s &
setsid sleep 4321.%s </dev/null >/dev/null 2>&1 &
nohup sleep 4321.%s </dev/null >/dev/null 2>&1 & disown
(trap '' HUP INT TERM; exec sleep 4321.%s) &
( ( setsid setsid sleep 4321.%s </dev/null >/dev/null 2>&1 & ) & )
setsid sh -c 'trap "" HUP TERM; (sleep 4321.%s & sleep 4321.%s) & exec sleep 4321.%s' </dev/null >/dev/null 2>&1 &
trap '' HUP
print now-$((20+22))
command sleep 4321.%s; command sleep 4321.%s; print after > after]]
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "text" and block.text:find("simple") then return { text = "fine" } end
  local stay
  for _, message in ipairs(request.messages) do
    for _, part in ipairs(message.content) do
      stay = part.kind == "text" and part.text:match("stay in call (%d+)") or stay
    end
  end
  if request.call > tonumber(stay) then
    return { text = ("long answer "):rep(200), chunk = 16, delay_ms = 1 }
  end
  local line = request.call == tonumber(stay) and STAY or QUICK
  return {
    text = "step " .. request.call,
    calls = { { name = "shell", input = { command = (line:gsub("%%s", UNIQUE)) } } },
  }
end
END
rounds=8
[[ $size == long ]] && rounds=50
cd "$P"
project
python3 "$tests/e2e/kill.py" "$run" "$db" "$P" "$rounds" "$EFR_BIN/efr" "$unique"
[[ ! -e $P/after ]] || fail 'the rest of a line ran after the kill'
equals "$(efr send -- simple)" fine 'the next prompt'
shopt -s nullglob
left=("$run"/shell/* "$run"/sbx/*/*)
equals "${left[*]}" '' 'what the killed ones left in the runtime root'
