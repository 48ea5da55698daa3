#!/usr/bin/env bash
# The commands of a conversation over the wire, with the real store: receipts (a repeat does nothing
# and gets the same answer), a full queue, withdrawing, interrupting with prompts taken back in one
# batch, a question answered once of two tries at the same moment, drafts with the offsets of events.
. "$(dirname "$0")/lib.sh"
new_home
config cautious
printf '[conversation]\nmax_queued = 3\n' >>"$HOME/.config/efr/config.toml"
model <<'EOF'
return function(request)
  local content = request.messages[#request.messages].content
  local block = content[#content]
  if block.kind == "tool_result" then return { text = "result: " .. block.output } end
  if block.text == "slow" then return { text = ("slow text, "):rep(400), chunk = 4, delay_ms = 5 } end
  if block.text == "ask" then
    return { calls = { { name = "shell", input = { command = "print asked-$((40+2))" } } } }
  end
  return { text = ("gr\u{fc}\u{df}e \u{1f600} "):rep(30) .. block.text, chunk = 7, delay_ms = 2 }
end
EOF
cd "$P"
project
python3 - "$tests/e2e" "$run/daemon.sock" "$P" <<'EOF'
import sys, uuid
sys.path.insert(0, sys.argv[1])
from client import Client
path, project = sys.argv[2], sys.argv[3]
client, second = Client(path), Client(path)


def refused(fn, name):
    try:
        fn()
    except RuntimeError as error:
        assert "'code': '%s'" % name in str(error), error
        return
    raise AssertionError("not refused: " + name)


def new():
    return str(uuid.uuid4())


def follow(sent, until):
    """All events of a prompt's turn, until one of a kind, and the drafts that came meanwhile."""
    watcher = Client(path)
    watcher.start("conversation.subscribe", {"conversation_id": sent["conversation_id"],
                                             "after_seq": sent["seq"], "drafts": True})
    events, drafts = [], []
    for item in watcher.stream():
        if item["kind"] == "draft":
            if item["turn_id"] == sent["turn_id"]:
                drafts.append(item["draft"])
        elif item["kind"] == "event":
            if item["event"].get("turn_id") == sent["turn_id"]:
                events.append(item["event"])
                if item["event"]["kind"] == until:
                    return events, drafts
        else:
            raise AssertionError(item)


def text_of(parts):
    text = b""
    for part in parts:
        assert part["offset"] == len(text), part
        text += part["delta"].encode()
    return text.decode()


# A prompt sent twice with one id runs once; a reused id of another method is a conflict.
params = {"command_id": new(), "new_conversation": True, "text": "one", "context": {"pwd": project}}
sent = client.request("prompt.send", params)
assert second.request("prompt.send", params) == sent
refused(lambda: client.request("prompt.withdraw", {
    "command_id": params["command_id"], "conversation_id": sent["conversation_id"],
    "target": {"kind": "turn", "turn_id": sent["turn_id"]}}), "conflict")
events, drafts = follow(sent, "turn_completed")
whole = [e["text"] for e in events if e["kind"] == "assistant_message_completed"][0]
assert whole.endswith(" one")
assert text_of([e for e in events if e["kind"] == "assistant_message_updated"]) == whole
shown = [d for d in drafts if d["kind"] == "text"]
assert whole.endswith(text_of([dict(d, offset=d["offset"] - shown[0]["offset"]) for d in shown]))
print("receipts, drafts: right (%d drafts)" % len(shown))

# A refusal is kept too: the same id gets it again.
bad = {"command_id": new(), "text": "x", "context": {"pwd": project}, "settings": {"mode": "nonsense"}}
for peer in (client, second):
    refused(lambda: peer.request("prompt.send", bad), "invalid")

# Queue, withdraw, interrupt.
cid = sent["conversation_id"]
slow = client.send("slow", project, cid)
follow(slow, "assistant_message_updated")
waiting = [client.send("w%d" % n, project, cid) for n in range(3)]
assert all(w.get("queued") for w in waiting), waiting
refused(lambda: client.send("too many", project, cid), "busy")
taken = {"command_id": new(), "conversation_id": cid,
         "target": {"kind": "turn", "turn_id": waiting[0]["turn_id"]}}
reply = client.request("prompt.withdraw", taken)
assert reply["withdrawn"]["text"] == "w0", reply
assert second.request("prompt.withdraw", taken)["withdrawn"]["text"] == "w0"
stop = {"command_id": new(), "conversation_id": cid, "turn_id": slow["turn_id"]}
refused(lambda: client.request("turn.interrupt", dict(stop, command_id=new(), withdraw=[new()])), "conflict")
stop["withdraw"] = [waiting[1]["turn_id"]]
reply = client.request("turn.interrupt", stop)
assert [w["text"] for w in reply["withdrawn"]] == ["w1"], reply
assert second.request("turn.interrupt", stop)["seq"] == reply["seq"]
events, _ = follow(slow, "turn_interrupted")
kept = [e["text"] for e in events if e["kind"] == "assistant_message_completed"][0]
# However early the interrupt came: what had arrived is kept.
assert 0 < len(kept) < 4000 and ("slow text, " * 400).startswith(kept), kept
follow(waiting[2], "turn_completed")
refused(lambda: client.request("turn.interrupt", {"command_id": new(), "conversation_id": cid}), "conflict")
print("queue, withdraw, interrupt: right")

# A question: of two answers at once one counts.
ask = client.send("ask", project, cid)
events, _ = follow(ask, "approval_requested")
call = events[-1]["call_id"]
started = [(peer, peer.start("approval.respond", {"command_id": new(), "conversation_id": cid,
                                                  "call_id": call, "decision": decision}))
           for peer, decision in ((client, "allow"), (second, "deny"))]
outcomes = []
for peer, wanted in started:
    message = peer.read()
    assert message["id"] == wanted
    outcomes.append("result" if "result" in message else message["error"]["data"]["code"])
assert sorted(outcomes) == ["not_found", "result"], outcomes
events, _ = follow(ask, "turn_completed")
resolved = [e for e in events if e["kind"] == "approval_resolved"]
assert len(resolved) == 1
text = [e["text"] for e in events if e["kind"] == "assistant_message_completed"][0]
assert ("asked-42" if resolved[0]["decision"] == "allow" else "denied") in text, text
print("question: right")
EOF
equals "$(sqlite3 "$db" "SELECT group_concat(status, ' ') FROM (SELECT status FROM turns ORDER BY queued_seq)")" \
    'completed interrupted withdrawn withdrawn completed completed' 'turns'
equals "$(sqlite3 "$db" "SELECT count(*) FROM turns t WHERE status = 'completed' AND NOT EXISTS
    (SELECT 1 FROM turn_messages m WHERE m.turn_id = t.id)")" 0 'completed turns without messages'
