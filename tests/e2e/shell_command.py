"""shell_command.py SOCKET PROJECT: the checks of shell_command.sh."""
import base64
import sys
import uuid

from client import Client

path, project = sys.argv[1:3]
client = Client(path)
conversation = None


def check(what, got, wanted):
    """Fails unless both are equal."""
    if got != wanted:
        sys.exit("FAIL %s: expected %r, got %r" % (what, wanted, got))


def has(what, text, part):
    """Fails unless the part is in the text."""
    if part not in text:
        sys.exit("FAIL %s: no %r in %.800r" % (what, part, text))


def refused(method, params, code, words):
    """The request is refused with this code and these words."""
    try:
        client.request(method, params)
    except RuntimeError as error:
        has(method, str(error), "'code': '%s'" % code)
        has(method, str(error), words)
        return
    sys.exit("FAIL %s %r was not refused" % (method, params))


def events(follower):
    """The events of a follower, one after another."""
    for item in follower.stream():
        if item["kind"] == "event":
            yield item["event"]


def turn(text, mode="auto", until=None):
    """Sends a prompt, says yes to what is asked; the events to the turn's end, or to one that `until` wants."""
    global conversation
    sent = client.send(text, project, conversation, mode=mode)
    conversation = sent["conversation_id"]
    follower = Client(path)
    follower.start("conversation.subscribe",
                   {"conversation_id": conversation, "after_seq": sent["seq"]})
    seen = []
    for event in events(follower):
        seen.append(event)
        if event["kind"] == "approval_requested":
            client.request("approval.respond", {"command_id": str(uuid.uuid4()), "conversation_id": conversation,
                                                "call_id": event["call_id"], "decision": "allow"})
        if event["kind"] == "turn_failed":
            sys.exit("FAIL the turn failed: %r" % event)
        if event["kind"] == "turn_completed" or until and until(event):
            break
    return follower, seen


def one(seen, kind):
    """The one event of a kind."""
    found = [event for event in seen if event["kind"] == kind]
    check("events of kind " + kind, len(found), 1)
    return found[0]


def answer(seen):
    """What the model said last."""
    return [event for event in seen if event["kind"] == "assistant_message_completed"][-1]["text"]


def wait_for(follower, kind):
    """The next event of a kind."""
    for event in events(follower):
        if event["kind"] == kind:
            return event


# ---- a contained command that is left running ----
follower, seen = turn("leave print here; sleep 4325")
left = one(seen, "shell_command_left")
check("the line", left["line"], "print here; sleep 4325")
has("the result", answer(seen), "still runs after 1 s and goes on in the hidden shell")
status = client.request("shell.status", {"conversation_id": conversation})
check("state", status["state"], "running")
check("status", (status["line"], status["left"], status["contained"], status["call_id"], status["pty_id"],
                 status["input"], status["cwd"]),
      (left["line"], True, True, left["call_id"], left["pty_id"], "none", project))
keys = base64.b64encode(b"x\r").decode()
refused("pty.write", {"pty_id": left["pty_id"], "data": keys}, "conflict", "sandbox")
_, busy = turn("leave print never")
has("a call of a busy shell", answer(busy), "the hidden shell is busy")
has("a call of a busy shell", answer(busy), ",new")
_, told = turn("what is going on")
has("the live state", answer(told), "still runs in the hidden shell, which takes no other until it ends: "
    "`print here; sleep 4325`")
status = client.request("shell.interrupt", {"conversation_id": conversation})
check("state after the interrupt", status["state"], "idle")
ended = wait_for(follower, "shell_command_ended")
check("the end", (ended["call_id"], ended["pty_id"]), (left["call_id"], left["pty_id"]))
follower.close()
refused("shell.interrupt", {"conversation_id": conversation}, "conflict", "no command runs")
refused("pty.write", {"pty_id": left["pty_id"], "data": keys}, "conflict", "no program reads")
_, seen = turn("run print again")
has("the shell afterwards", answer(seen), "again\n[exit code 0")

# ---- a full-screen program outside the sandbox ----
follower, seen = turn("leave vi -u NONE -N -i NONE note", mode="cautious")
has("the result", answer(seen), "full-screen program")
has("the screen in the result", answer(seen), "~\n~\n")
pty = one(seen, "shell_command_left")["pty_id"]
refused("pty.resize", {"pty_id": pty, "size": {"cols": 70, "rows": 20}}, "conflict", "not attached")
viewer = Client(path)
viewer.start("pty.attach", {"pty_id": pty, "screens": True})
pictures = viewer.stream()


def text_of(row):
    """The text of a row."""
    return "".join(cell["text"] for cell in row["cells"]).rstrip()


class Screen:
    """The screen as its pictures tell it."""

    def __init__(self):
        self.rows, self.size, self.alternate = [], None, None

    def wait(self, what, ready):
        """Takes pictures until it is ready."""
        while not ready(self):
            item = next(pictures)
            if item["kind"] == "snapshot":
                snapshot = item["snapshot"]
                self.size, self.rows = snapshot["size"], [text_of(row) for row in snapshot["rows"]]
                self.alternate = snapshot["alternate_screen"]
            elif item["kind"] == "screen":
                for row in item["changed"]:
                    self.rows[row["row"]] = text_of(row)
                self.alternate = item["alternate_screen"]
            else:
                sys.exit("FAIL %s: the item %r" % (what, item))


screen = Screen()
screen.wait("the first picture", lambda s: s.size)
check("the usual size", screen.size, {"cols": 120, "rows": 40})
check("the alternate screen", screen.alternate, True)
check("the size in force", viewer.request("pty.resize", {"pty_id": pty, "size": {"cols": 70, "rows": 20}}),
      {"size": {"cols": 70, "rows": 20}})
screen.wait("the new size", lambda s: s.size["cols"] == 70 and s.rows.count("~") == 18)
viewer.request("pty.write", {"pty_id": pty, "data": base64.b64encode(b"ihello there").decode()})
screen.wait("the text", lambda s: s.rows[0] == "hello there")

raw = Client(path)
raw.start("pty.attach", {"pty_id": pty})
first = next(raw.stream())
check("the start of a raw attachment", (first["kind"], text_of(first["snapshot"]["rows"][0])),
      ("snapshot", "hello there"))
viewer.request("pty.write", {"pty_id": pty, "data": base64.b64encode(b" you").decode()})
seq, got = first["seq"], b""
for item in raw.stream():
    data = base64.b64decode(item["data"])
    check("the offset", item["seq"], seq + len(data))
    seq, got = item["seq"], got + data
    if b"you" in got:
        break
again = Client(path)
again.start("pty.attach", {"pty_id": pty, "since_seq": first["seq"]})
item = next(again.stream())
check("the missed bytes", (item["kind"], base64.b64decode(item["data"])[:len(got)]), ("output", got))
again.close()
viewer.request("pty.write", {"pty_id": pty, "data": base64.b64encode(b"\x1b:wq\r").decode()})
ended = wait_for(follower, "shell_command_ended")
check("the end of vi", ended.get("exit_code", 0), 0)
with open(project + "/note", encoding="utf-8") as file:
    check("the file", file.read(), "hello there you\n")
refused("pty.write", {"pty_id": pty, "data": keys}, "conflict", "no program reads")
viewer.close()
raw.close()
follower.close()
_, seen = turn("run stty size", mode="cautious")
has("the size afterwards", answer(seen), "40 120\n")

# ---- a shell inside the hidden one ----
_, seen = turn("nest bash --norc", mode="cautious")
has("a nested shell", answer(seen), "a shell is open in the hidden shell now")
one(seen, "shell_command_left")
_, seen = turn("nest cd / && echo in $BASH", mode="cautious")
has("a line in it", answer(seen), "result: in /")
has("a line in it", answer(seen), "bash\n[exit code 0, cwd /, in the shell that bash --norc started]")
_, seen = turn("run print no", mode="cautious")
has("a line beside it", answer(seen), "the hidden shell is busy")
_, seen = turn("nest exit", mode="cautious")
has("its end", answer(seen), "has ended")
_, seen = turn("nest bash", mode="auto")
has("auto", answer(seen), "refused this call")
_, seen = turn("run pwd", mode="cautious")
has("afterwards", answer(seen), "result: " + project)

# ---- a client that reads nothing of a flood, and the end of the shell ----
slow = Client(path)
slow.start("pty.attach", {"pty_id": pty, "since_seq": 1 << 40})
next(slow.stream())
_, seen = turn("run yes flood | head -c 8000000; print end-$((40+2))", mode="cautious")
has("the flood", answer(seen), "end-42")
try:
    for item in slow.stream():
        pass
except RuntimeError as error:
    has("the slow client", str(error), "overflow")
    has("the slow client", str(error), "last_seq")
slow.close()
viewer = Client(path)
wanted = viewer.start("pty.attach", {"pty_id": pty, "screens": True})
next(viewer.stream())
turn("run exit", mode="cautious")
while True:
    message = viewer.read()
    if message.get("id") == wanted:
        check("the end of the stream", message["result"], {})
        break
check("state", client.request("shell.status", {"conversation_id": conversation})["state"], "exited")
refused("pty.attach", {"pty_id": pty}, "not_found", "no shell")
_, seen = turn("run print new", mode="cautious")
has("a new shell", answer(seen), "without its variables")
