#!/usr/bin/env bash
# Many calls in one conversation, many conversations at once: memory of efrd stays flat, no descriptor
# and no process is left. CI size 60 calls and 6 conversations, long size 500 and 20.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function(request)
  if request.call >= 30 then return { text = "end of the turn" } end
  return { calls = { { name = "shell", input = { command = "print -r -- call-$((" .. request.call .. "+1000))" } } } }
end
EOF
calls=60 conversations=6
[[ $size == long ]] && calls=510 conversations=20
cd "$P"
project
python3 - "$tests/e2e" "$run" "$P" "$calls" "$conversations" <<'EOF'
import json, os, select, sys
sys.path.insert(0, sys.argv[1])
from client import Client
run, project, calls, conversations = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
pid = json.load(open(run + "/daemon.json"))["pid"]

def facts():
    rss = int([l for l in open("/proc/%d/status" % pid) if l.startswith("VmRSS")][0].split()[1])
    return rss, len(os.listdir("/proc/%d/fd" % pid)), children(pid)

def children(parent):
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(open("/proc/%s/stat" % name).read().rsplit(")", 1)[1].split()[1]) == parent:
                count += 1
        except (OSError, IndexError):
            pass
    return count

def turn(client, sent):
    """Follows one turn to its end; returns the number of completed calls, each checked."""
    client.start("conversation.subscribe",
                 {"conversation_id": sent["conversation_id"], "after_seq": sent["seq"]})
    done = 0
    for item in client.stream():
        event = item["event"] if item["kind"] == "event" else None
        for event in ([event] if event else [e["event"] for e in item.get("events", [])]):
            if event["kind"] == "tool_call_completed":
                assert "call-%d" % (1000 + done) in event["output"], event
                done += 1
            elif event["kind"] == "turn_completed":
                return done
            elif event["kind"] in ("turn_failed", "turn_cancelled", "turn_interrupted"):
                raise AssertionError(event)

path = run + "/daemon.sock"
conversation, total, rows = None, 0, []
while total < calls:
    client = Client(path)
    sent = client.send("go", project, conversation)
    conversation = sent["conversation_id"]
    total += turn(client, sent)
    client.sock.close()
    rows.append(facts())
    print("after %d calls: %d KiB resident, %d descriptors, %d children" % ((total,) + rows[-1]))
first, last = rows[0], rows[-1]
# The history of the conversation grows (it only grows); what is allowed is that and some slack.
assert last[0] - first[0] < 4096 + 24 * (total - 30), "memory grows: %s" % rows
assert last[1] <= first[1], "descriptors grow: %s" % rows
assert last[2] <= first[2], "processes grow: %s" % rows

clients = []
for n in range(conversations):
    client = Client(path)
    clients.append((client, client.send("go", project)))
for client, sent in clients:
    assert turn(client, sent) == 30
    client.sock.close()
rss, fds, kids = facts()
print("after %d conversations at once: %d KiB resident, %d descriptors, %d children" % (conversations, rss, fds, kids))
EOF
stop_daemon TERM
wait_no_leftovers
