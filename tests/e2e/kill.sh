#!/usr/bin/env bash
# kill -9 of efrd at random moments of a turn: the store opens, every event that a client was shown is
# there, nothing of the call survives, the turn is recorded as cancelled, the next prompt works.
# CI size 6 moments, long size 50.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "text" and block.text:find("simple") then return { text = "fine" } end
  if request.call >= 12 then return { text = ("long answer "):rep(200), chunk = 16, delay_ms = 1 } end
  return { text = "step " .. request.call, calls = { { name = "shell", input = { command =
    "sleep 4321 & setsid sleep 4322 & print -r -- " .. ("x"):rep(50) .. "; print more > file" } } } }
end
EOF
rounds=6
[[ $size == long ]] && rounds=50
cd "$P"
project
python3 - "$tests/e2e" "$run" "$db" "$P" "$rounds" "$HOME" "$EFR_BIN/efr" <<'EOF'
import json, os, random, select, signal, sqlite3, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from client import Client
run, db, project, rounds, home, efr = sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6], sys.argv[7]
seed = random.randrange(2**32)
print("seed", seed)
random.seed(seed)

def pid_of():
    return json.load(open(run + "/daemon.json"))["pid"]

def survivors():
    """Processes of this test's HOME below a hidden shell, and the sleeps of the calls."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = open("/proc/%s/cmdline" % name, "rb").read().split(b"\0")
        except OSError:
            continue
        if command[:1] == [b"sleep"] and command[1:2] in ([b"4321"], [b"4322"]):
            found.append((int(name), command))
    return found

inside = 0  # rounds that were killed while a call ran

for n in range(rounds):
    subprocess.run([efr, "status"], check=True, stdout=subprocess.DEVNULL)
    pid = pid_of()
    handle = os.pidfd_open(pid)
    client = Client(run + "/daemon.sock")
    sent = client.send("round %d" % n, project)
    shown = [(sent["seq"], "prompt_queued")]
    client.start("conversation.subscribe",
                 {"conversation_id": sent["conversation_id"], "after_seq": sent["seq"], "drafts": True})
    wanted, count = random.randrange(0, 60), 0
    delay = random.random() * 0.02
    try:
        for item in client.stream():
            if item["kind"] == "event":
                shown.append((item["seq"], item["event"]["kind"]))
                if item["event"]["kind"].startswith("turn_") and item["event"]["kind"] != "turn_started":
                    break
            count += 1
            if count > wanted:
                break
        # Not a wait for something: the moment of the kill is random on purpose.
        select.select([client.sock], [], [], delay)
        os.kill(pid, signal.SIGKILL)
        # What still arrives was acknowledged too.
        while True:
            message = client.read()
            item = message.get("params", {}).get("item", {})
            if item.get("kind") == "event":
                shown.append((item["seq"], item["event"]["kind"]))
    except ConnectionError:
        pass
    select.select([handle], [], [], 30)
    os.close(handle)
    open_calls = sum(k == "tool_call_started" for _, k in shown) - sum(k == "tool_call_completed" for _, k in shown)
    inside += open_calls > 0
    left = []
    for p, command in survivors():
        try:
            fd = os.pidfd_open(p)
        except ProcessLookupError:
            continue
        if not select.select([fd], [], [], 20)[0]:
            left.append((p, command))
        os.close(fd)
    assert not left, "survived: %s" % left
    subprocess.run([efr, "status"], check=True, stdout=subprocess.DEVNULL)
    con = sqlite3.connect("file:%s?mode=ro" % db, uri=True)
    assert con.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    have = dict(con.execute("SELECT seq, kind FROM events"))
    lost = [(s, k) for s, k in shown if have.get(s) != k]
    assert not lost, "lost events: %s" % lost
    running = con.execute("SELECT count(*) FROM turns WHERE status IN ('running', 'queued')").fetchone()[0]
    assert running == 0, "turns still open: %d" % running
    con.close()
    print("round %d: killed after %d items, %d events shown, all there" % (n, count, len(shown)))
assert inside > 0, "no round was killed while a call ran"
EOF
equals "$(efr send -- simple)" fine 'the next prompt'
