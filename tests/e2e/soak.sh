#!/usr/bin/env bash
# Many calls in one conversation, many conversations at once, twice: memory of efrd grows by the texts of the history and
# no more, the second round leaves nothing that the first did not leave, no descriptor and no process is left once the
# shells are gone. CI size 60 calls and 4 conversations, long size 510 and 20. Not covered: the memory of shells,
# screens and keepers.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function(request)
  if request.call >= 30 then return { text = "end of the turn" } end
  return { calls = { { name = "shell", input = { command = "print -r -- call-$((" .. request.call .. "+1000))" } } } }
end
EOF
calls=60 conversations=4
[[ $size == long ]] && calls=510 conversations=20
cd "$P"
project
python3 - "$tests/e2e" "$run" "$P" "$calls" "$conversations" <<'EOF'
import json, os, select, signal, sys
sys.path.insert(0, sys.argv[1])
from client import Client
run, project, calls, conversations = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
pid = json.load(open(run + "/daemon.json"))["pid"]

def resident():
    return int([l for l in open("/proc/%d/status" % pid) if l.startswith("VmRSS")][0].split()[1])

def facts(client):
    """Resident KiB, descriptors, children, once the daemon has tidied up after the last turn: the least while it
    answers 600 requests, which make some garbage of their own."""
    least = None
    for _ in range(600):
        client.request("admin.status", {})
        now = resident(), len(os.listdir("/proc/%d/fd" % pid))
        least = now if least is None else (min(least[0], now[0]), min(least[1], now[1]))
    return least + (len(children()),)

def children():
    """Pids of efrd's children, zombies apart."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = open("/proc/%s/stat" % name).read().rsplit(")", 1)[1].split()[:2]
        except (OSError, ValueError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(name))
    return found

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

def end_shells():
    """Ends every hidden shell as a user's kill would, and waits for it."""
    for pid_of_child in children():
        try:
            if open("/proc/%d/comm" % pid_of_child).read() != "zsh\n":
                continue
            handle = os.pidfd_open(pid_of_child)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue  # a helper of a shell that was ended before it
        assert select.select([handle], [], [], 30)[0], "a shell lives on"
        os.close(handle)

path = run + "/daemon.sock"
client = Client(path)
start = facts(client)
client.close()
print("at the start: %d KiB resident, %d descriptors, %d children" % start)
conversation, total, rows = None, 0, []
while total < calls:
    client = Client(path)
    sent = client.send("go", project, conversation)
    conversation = sent["conversation_id"]
    total += turn(client, sent)
    rows.append((total,) + facts(client))
    client.close()
    print("after %d calls: %d KiB resident, %d descriptors, %d children" % rows[-1])
# From the second turn on, when the caches are warm; the ends of some are reached within 300 calls (SQLite's, the
# decisions that are kept). After that only the history's texts grow, half a KiB a call here.
first, last = rows[1], rows[-1]
assert last[1] - first[1] < 768 + 2 * (last[0] - first[0]), "memory grows: %s" % rows
late = next((row for row in rows if row[0] >= 300), last)
assert last[1] - late[1] < 128 + (last[0] - late[0]), "memory grows: %s" % rows
assert last[2] <= first[2], "descriptors grow: %s" % rows
assert last[3] <= first[3], "processes grow: %s" % rows

def round_of_many():
    """Conversations at once, then the end of their shells; returns the facts after it."""
    clients = []
    for n in range(conversations):
        client = Client(path)
        clients.append((client, client.send("go", project)))
    for client, sent in clients:
        assert turn(client, sent) == 30
        client.close()
    client = Client(path)
    many = facts(client)
    print("after %d conversations at once: %d KiB resident, %d descriptors, %d children" % ((conversations,) + many))
    each = (many[0] - last[1]) / conversations
    assert each < 512, "%d KiB for each conversation" % each
    assert many[1] - last[2] <= 10 * conversations, "descriptors of a conversation"
    assert many[2] - last[3] <= 3 * conversations, "processes of a conversation"
    end_shells()
    rest = facts(client)
    client.close()
    print("without their shells: %d KiB resident, %d descriptors, %d children" % rest)
    assert rest[1:] == start[1:], "left: %s, at the start: %s" % (rest, start)
    return rest

once, again = round_of_many(), round_of_many()
assert once[0] < 1.15 * first[1], "%d KiB left, %d KiB after the second turn" % (once[0], first[1])
assert again[0] - once[0] < 256, "a second round leaves %d KiB more" % (again[0] - once[0])
EOF
stop_daemon TERM
wait_no_leftovers
