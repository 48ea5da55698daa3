#!/usr/bin/env python3
"""bench.py BUILD: speed and memory of efr beside public tools, measured in one run, as a table of ratios.

Owns: the measured rows of ./dev bench that concern whole programs (launch, status, start to first
answer, overhead per tool call, memory). Rows of one part alone are scripts beside this file.
Samples of a row and of its yardstick take turns, so both see the same machine.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "e2e"))
from client import Client  # noqa: E402

build = os.path.abspath(sys.argv[1])
efr = os.path.join(build, "bin", "efr")
base = os.path.join(os.path.expanduser("~"), ".cache", "efr-bench")
os.makedirs(base, exist_ok=True)
top = tempfile.mkdtemp(dir=base)
home = os.path.join(top, "home")
project = os.path.join(home, "p")
run = os.path.join(home, ".local/state/efr/run")
os.makedirs(project)
os.makedirs(os.path.join(home, ".config/efr"), mode=0o700)
env = {"HOME": home, "USER": os.environ.get("USER", "user"), "PATH": os.path.dirname(efr) + ":/usr/bin:/bin",
       "LANG": "C.UTF-8", "TERM": "xterm", "SHELL": "/bin/zsh"}

MODEL = """
return function(request)
  local last = request.messages[#request.messages]
  local text = last.content[#last.content].text
  local n = text and tonumber(text:match("calls (%d+)"))
  for _, m in ipairs(request.messages) do
    local t = m.content[#m.content].text
    n = n or (t and tonumber(t:match("calls (%d+)")))
  end
  if n and request.call < n then
    return { calls = { { name = "shell", input = { command = "true" } } } }
  end
  return { text = "answer" }
end
"""


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def quiet(args, **kw):
    return subprocess.run(args, env=env, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)


def sample(args):
    begin = time.perf_counter()
    done = quiet(args)
    spent = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit("bench: %s ended with %d" % (args, done.returncode))
    return spent * 1000


def turns(rows, count):
    """Samples of several commands, one after another, count times."""
    found = {name: [] for name in rows}
    for _ in range(count):
        for name, args in rows.items():
            found[name].append(sample(args) if isinstance(args, list) else args())
    return found


def p95(values):
    return sorted(values)[max(0, int(len(values) * 0.95) - 1)]


table = []


def row(what, values, yard, yard_values):
    mine, theirs = statistics.median(values), statistics.median(yard_values)
    table.append((what, "%.2f" % mine, "%.2f" % p95(values), yard, "%.2f" % theirs, "%.2f" % (mine / theirs)))


def resident(pid):
    return int([x for x in open("/proc/%d/status" % pid) if x.startswith("VmRSS")][0].split()[1]) / 1024


def idle_resident():
    """MiB of efrd once its start is over (the sandbox is checked behind it): the least while 100 commands ask it."""
    least = None
    for _ in range(100):
        quiet([efr, "status"])
        now = resident(daemon_pid())
        least = now if least is None else min(least, now)
    return least


def daemon_pid():
    return json.load(open(os.path.join(run, "daemon.json")))["pid"]


def stop():
    pid = daemon_pid()
    fd = os.pidfd_open(pid)
    os.kill(pid, 15)
    import select
    if not select.select([fd], [], [], 20)[0]:
        raise SystemExit("bench: efrd does not stop")
    os.close(fd)


def first_answer():
    stop()
    return sample([efr, "send", "--", "hello"])


def per_call():
    """Milliseconds for one contained call inside a turn, from the whole time of a turn with 20 calls."""
    client = Client(os.path.join(run, "daemon.sock"))
    begin = time.perf_counter()
    sent = client.send("calls 20", project)
    client.start("conversation.subscribe", {"conversation_id": sent["conversation_id"], "after_seq": sent["seq"]})
    for item in client.stream():
        event = item.get("event", {})
        if event.get("kind") == "turn_completed":
            break
        if event.get("kind") == "turn_failed":
            raise SystemExit("bench: %s" % event)
    client.sock.close()
    return (time.perf_counter() - begin) * 1000 / 20


try:
    write(os.path.join(home, ".zshrc"), "")
    write(os.path.join(home, "model.lua"), MODEL)
    write(os.path.join(home, ".config/efr/config.toml"),
          '[model]\nprovider = "scripted"\n[scripted]\nfile = "~/model.lua"\n[permissions]\nmode = "auto"\n')
    if quiet([efr, "project", "add", project]).returncode:
        raise SystemExit("bench: efr project add failed")
    tmux = ["tmux", "-L", "efr-bench-%d" % os.getpid(), "-f", "/dev/null"]
    quiet(tmux + ["new-session", "-d", "sleep 600"])
    try:
        idle = idle_resident()
        server = int(subprocess.check_output(tmux + ["display-message", "-p", "#{pid}"], env=env))
        times = turns({"status": [efr, "status"], "tmux": tmux + ["list-sessions"]}, 60)
        row("efr status, whole process, ms", times["status"], "tmux list-sessions", times["tmux"])
        table.append(("idle efrd, MiB resident", "%.1f" % idle, "", "tmux server", "%.1f" % resident(server),
                      "%.2f" % (idle / resident(server))))
    finally:
        quiet(tmux + ["kill-server"])
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--bind", project, project,
             "--proc", "/proc", "--dev", "/dev", "true"]
    times = turns({"run": [efr, "run", "--", "true"], "bwrap": bwrap, "bare": ["true"]}, 60)
    row("efr run -- true, whole, ms", times["run"], "plain bwrap", times["bwrap"])
    times = turns({"first": first_answer, "zsh": ["zsh", "-lic", "true"]}, 10)
    row("start of efrd to first answer, ms", times["first"], "zsh -lic true", times["zsh"])
    times = turns({"call": per_call, "run": [efr, "run", "--", "true"]}, 8)
    row("one tool call in a turn (instant model), ms", times["call"], "efr run -- true", times["run"])
    stop()
finally:
    shutil.rmtree(top, ignore_errors=True)

head = ("what", "median", "p95", "beside", "median", "ratio")
widths = [max(len(r[i]) for r in table + [head]) for i in range(6)]
for r in [head] + table:
    print("  ".join(r[i].ljust(widths[i]) for i in range(6)).rstrip())
