"""kill.py RUN DB PROJECT ROUNDS EFR UNIQUE: the rounds of kill.sh. The process that a call leaves behind sleeps
4320.UNIQUE seconds in a call that ends, 4321.UNIQUE in the one that is killed.

Owns: the moments of the kills and what must hold after each. Must not know: the model's lines.
"""
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import uuid

from client import Client

run, db, project, rounds, efr, unique = sys.argv[1:4] + [int(sys.argv[4])] + sys.argv[5:7]
LIMIT = 20
seed = random.randrange(2**32)
print("seed", seed)
random.seed(seed)


def commands():
    """(pid, argv) of all processes that are not dead."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = open("/proc/%s/cmdline" % name, "rb").read().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if argv != [""]:
            yield int(name), argv


def sleeping(length):
    return [pid for pid, argv in commands() if argv[:2] == ["sleep", "%s.%s" % (length, unique)]]


def keepers(shells):
    """The keepers of these hidden shells."""
    return [pid for pid, argv in commands() if argv[:2] == ["efr-sbx", "keep"] and argv[2] in shells]


def wait_end(handle, what):
    assert select.select([handle], [], [], LIMIT)[0], "%s lives on" % what
    os.close(handle)


def open_all(pids):
    handles = []
    for pid in pids:
        try:
            handles.append(os.pidfd_open(pid))
        except ProcessLookupError:
            pass
    return handles


class Round:
    """One turn up to its kill."""

    def __init__(self, mode, stay):
        subprocess.run([efr, "status"], check=True, stdout=subprocess.DEVNULL)
        self.pid = json.load(open(run + "/daemon.json"))["pid"]
        self.client, self.answers = Client(run + "/daemon.sock"), Client(run + "/daemon.sock")
        sent = self.client.send("stay in call %d" % stay, project, mode=mode)
        self.conversation = sent["conversation_id"]
        self.shown = [(sent["seq"], "prompt_queued")]
        self.shells = set()
        self.client.start("conversation.subscribe", {
            "conversation_id": self.conversation, "after_seq": sent["seq"], "drafts": True})

    def note(self, item):
        """Keeps what an item says; returns its event, or an empty one."""
        if item.get("kind") != "event":
            return {}
        event = item["event"]
        self.shown.append((item["seq"], event["kind"]))
        if event["kind"] == "shell_started":
            self.shells.add(str(event["pid"]))
        return event

    def reach(self, is_moment):
        """Follows the turn, says yes to its questions, until is_moment(event, items)."""
        items = 0
        for item in self.client.stream():
            event, items = self.note(item), items + 1
            if is_moment(event, items):
                return
            if event.get("kind") == "approval_requested":
                self.answers.request("approval.respond", {
                    "command_id": str(uuid.uuid4()), "conversation_id": self.conversation,
                    "call_id": event["call_id"], "decision": "allow"})
            assert event.get("kind") not in ("turn_completed", "turn_failed"), event

    def kill(self, signum=signal.SIGKILL):
        """A random short moment later, in work and not in time; then what was acknowledged before."""
        for _ in range(random.randrange(12)):
            self.answers.request("admin.status", {})
        handle, watch = os.pidfd_open(self.pid), open_all(keepers(self.shells))
        os.kill(self.pid, signum)
        try:
            while True:
                self.note(self.client.read().get("params", {}).get("item", {}))
        except ConnectionError:
            pass
        wait_end(handle, "efrd")
        # And those that efrd started in its last moment.
        for handle in watch + open_all(keepers(self.shells)):
            wait_end(handle, "a keeper")
        return len(watch)

    def in_call(self):
        kinds = [kind for _, kind in self.shown]
        return kinds.count("tool_call_started") > kinds.count("tool_call_completed")


def check_processes(mode, over):
    """Nothing of the call, all that the calls before it left."""
    for handle in open_all(sleeping("4321")):
        # The kernel may still be at the end of a process that was killed.
        assert mode == "auto" and select.select([handle], [], [], LIMIT)[0] or \
            select.select([handle], [], [], 0)[0], "survived: sleep 4321.%s" % unique
        os.close(handle)
    left = sleeping("4320")
    assert len(left) == (over if mode == "cautious" else 0), (mode, over, left)
    for handle, pid in zip(open_all(left), left):
        os.kill(pid, signal.SIGKILL)
        wait_end(handle, "sleep")


def check_store(shown):
    subprocess.run([efr, "status"], check=True, stdout=subprocess.DEVNULL)
    con = sqlite3.connect("file:%s?mode=ro" % db, uri=True)
    assert con.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    have = dict(con.execute("SELECT seq, kind FROM events"))
    lost = [(seq, kind) for seq, kind in shown if have.get(seq) != kind]
    assert not lost, "lost events: %s" % lost
    running = con.execute("SELECT count(*) FROM turns WHERE status IN ('running', 'queued')").fetchone()[0]
    assert running == 0, "turns still open: %d" % running
    con.close()


def moment(n):
    """A name and is_moment: mostly in the call that stays, now and then anywhere."""
    if n % 5 == 4:
        wanted = random.randrange(0, 25)
        return "item %d" % wanted, lambda event, items: items > wanted or "now-42" in event.get("tail", "")
    if n % 5 == 3:
        return "start", lambda event, items: event.get("kind") == "tool_call_started" and "4321" in \
            event["input"]["command"]
    return "run", lambda event, items: "now-42" in event.get("tail", "")


inside = 0  # rounds that were killed while a call ran
for n in range(rounds):
    mode, stay = ("cautious", "auto")[n % 2], random.randrange(3)
    name, is_moment = moment(n)
    one = Round(mode, stay)
    one.reach(is_moment)
    kept = one.kill()
    running = one.in_call()
    inside += running
    assert name != "run" or kept == len(one.shells) == 1, "shells %s had %d keepers" % (one.shells, kept)
    over = [kind for _, kind in one.shown].count("tool_call_completed")
    # Killed between two calls, or while a quick one runs: either count is right.
    if name.startswith("item"):
        over = len(sleeping("4320")) if mode == "cautious" else 0
    check_processes(mode, over)
    check_store(one.shown)
    print("round %d: %s, call %d, killed at %s, %sin a call, %d events shown, all there" % (
        n, mode, stay, name, "" if running else "not ", len(one.shown)))
assert inside * 3 >= rounds * 2, "only %d of %d rounds were killed while a call ran" % (inside, rounds)

# A clean stop ends the same processes.
one = Round("cautious", 1)
one.reach(lambda event, items: "now-42" in event.get("tail", ""))
over = [kind for _, kind in one.shown].count("tool_call_completed")
one.kill(signal.SIGTERM)
check_processes("cautious", over)
check_store(one.shown)
