#!/usr/bin/env bash
# One line for a terminal that does not follow: a turn that finished, one that failed, a question that
# waits, prompts that a restart dropped; none for a terminal that follows. Not covered: how the plugin
# shows the file (tests/zsh).
. "$(dirname "$0")/lib.sh"
new_home
config cautious
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "text" and block.text:find("fail") then
    error("no answer today")
  elseif block.kind == "text" and block.text:find("ask") then
    return { calls = { { name = "shell", input = { command = "true" } } } }
  end
  return { text = "fine" }
end
EOF
cd "$P"
project
python3 - "$tests/e2e" "$run" "$P" <<'EOF'
import os
import sys
import uuid

sys.path.insert(0, sys.argv[1])
from client import Client

run, project = sys.argv[2:]


def prompt(client, text, tty, **more):
    return client.request("prompt.send", dict({
        "command_id": str(uuid.uuid4()), "text": text,
        "context": {"pwd": project, "tty": tty}}, **more))


def until(client, conversation, *kinds):
    client.start("conversation.subscribe", {"conversation_id": conversation, "after_seq": 0})
    for item in client.stream():
        if item["kind"] == "event" and item["event"]["kind"] in kinds:
            return item["event"]


def notice(tty):
    path = os.path.join(run, "notices", tty.removeprefix("/dev/").replace("/", "-"))
    if not os.path.exists(path):
        return ""
    assert os.lstat(path).st_mode & 0o777 == 0o600
    with open(path, encoding="utf-8") as file:
        return file.read()


def check(tty, text, end, start, **more):
    client = Client(run + "/daemon.sock")  # hello without a tty: it follows for nobody's terminal
    sent = prompt(client, text, tty, **more)
    until(client, sent["conversation_id"], end)
    # The replay may read the event from the store before efrd itself heard of it; one more request,
    # and it has.
    client.request("admin.status", {})
    assert notice(tty).startswith(start), (tty, notice(tty))
    client.sock.close()
    return sent["conversation_id"]


check("/dev/pts/901", "say fine", "turn_completed", "efr: turn finished: say fine\n")
check("/dev/pts/902", "please fail", "turn_failed", "efr: turn failed: please fail: ")
asked = check("/dev/pts/903", "ask me", "approval_requested", "efr: approval waiting: ask me: ")
waiting = prompt(Client(run + "/daemon.sock"), "one more", "/dev/pts/903", conversation_id=asked)
assert waiting.get("queued"), waiting
EOF

# A client that follows what it sent: no line for its terminal.
EFR_PROMPT='say fine' efr send >/dev/null 2>&1
equals "$(cd "$run/notices" && echo ./*)" './pts-901 ./pts-902 ./pts-903' 'notice files'

id=$(sqlite3 "$db" "SELECT id FROM conversations WHERE tty = '/dev/pts/903'")
rm "$run/notices/pts-903"
stop_daemon KILL
efr status >/dev/null
equals "$(cat "$run/notices/pts-903")" \
    "efr restarted; a queued prompt did not run; see it with efr history $id and send it again" 'restart line'
equals "$(sqlite3 "$db" "SELECT group_concat(status) FROM turns WHERE conversation_id = '$id'")" \
    cancelled,cancelled turns
equals "$(sqlite3 "$db" 'SELECT status FROM approvals')" expired approvals
