#!/usr/bin/env bash
# Also as root.
# A call that forks until it cannot (as root 2500 times, since the limit there needs a new kernel), and (as root, on a small disk of the test's own) one that fills the
# disk: the daemon, the store and the user's shell live on, and work again when the call is gone.
# Not covered: memory, and the limits themselves (tests/sbx/end.sh).
. "$(dirname "$0")/lib.sh"
if [[ $(id -u) == 0 && -z ${EFR_TEST_NAMESPACE-} ]]; then
    export EFR_TEST_NAMESPACE=1
    exec unshare --mount --propagation private bash "$0"
fi
if [[ $(id -u) == 0 ]]; then
    disk=${EFR_TEST_BASE:-$HOME/.cache/efr-tests}
    mkdir -p "$disk"
    mount -t tmpfs -o size=64m none "$disk"
fi
new_home
config auto
model <<'END'
local function result(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  return block.kind == "tool_result" and block or { output = "" }
end
return function(request)
  if request.call == 0 then
    local fill = "[[ -e go ]] && head -c 200M /dev/zero >fill; echo out-$((40+2))"
    return { calls = { { name = "shell", input = { command = fill } } } }
  end
  return { text = "saw: " .. result(request).output }
end
END
cd "$P"
project
contains "$(efr send -- one)" 'out-42' 'before'

cat >bomb.py <<'END'
import os, time
made, first = 0, os.getpid()
try:
    while made < 2500 and os.fork():
        made += 1
except OSError:
    pass
if os.getpid() == first:
    open("full", "w").write("%d" % made)
time.sleep(1000)
END
efr run -- sh -c 'ulimit -u 2000 2>/dev/null; exec /usr/bin/python3 bomb.py' &
bomb=$!
until [[ -s full ]] || ! kill -0 $bomb 2>/dev/null; do read -rt 0.05 <> <(:) || true; done
[[ $(cat full) -gt 1500 ]] || fail "the bomb was none: $(cat full)"
contains "$(efr status)" 'efrd' 'status beside a fork bomb'
contains "$(efr send -- two)" 'out-42' 'a turn beside a fork bomb'
kill -TERM $bomb
rc=0
wait $bomb || rc=$?
equals $rc 143 'the ended bomb'
rm bomb.py full

[[ $(id -u) == 0 ]] || exit 0
pid=$(daemon_pid)
touch go
# What it says cannot go to a file of that disk.
exec {three}< <(exec efr send -- three 2>&1)
sent=$!
until [[ $(stat -f -c %a "$disk") -lt 10 ]] || ! kill -0 $sent 2>/dev/null; do read -rt 0.05 <> <(:) || true; done
[[ $(stat -f -c %a "$disk") -lt 10 ]] || fail 'the disk is not full, so this shows nothing'
contains "$(efr status)" 'efrd' 'status on a full disk'
equals "$(daemon_pid)" "$pid" 'the daemon'
line=
until [[ $line == *'cannot record the end of this turn'*full* ]]; do
    read -rt "$limit" -u "$three" line || fail 'no word of the full disk'
done
rm go fill # the end of the turn is recorded as soon as it can be
wait $sent || true
contains "$(efr send -- four)" 'out-42' 'a turn when there is space again'
out=$(efr history)
for word in one two four; do contains "$out" "$word" 'the history'; done
