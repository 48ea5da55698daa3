# Kills one party of a launch at each of its stages: stages.py LAUNCHER CALL-DIRECTORY SOURCES.
# LAUNCHER is the test build that stops at a named stage (unsafe.h); the plan of CALL-DIRECTORY is
# used again for each launch, and its command is what `running` below waits for. Parties: the shell
# that started the launcher, the launcher, pid 1 (which is the broker) and the command. After each
# kill every process of the call must go by itself, and no result may claim that the command ended.
# Every process of the call holds the write end of one pipe, so its end tells.
import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

LIMIT_S = 60  # only a failure meets it
launcher, call, sources = sys.argv[1:4]
STAGES = {
    "launcher": ["parent", "descriptors", "call directory", "plan", "environment", "landlock", "start",
                 "tool caches"],
    "init": ["start", "identity", "network", "read-only root", "mount sources", "devices", "pool",
             "proc", "mounts", "directory", "no_new_privs", "landlock", "start of the command", "pid 1"],
    "command": ["command", "seccomp"],
}
# Stages of other subcommands, of a failure alone, and of calls with a limit of memory, for which this
# machine may have no cgroup (tests/kernels/memory.sh).
ELSEWHERE = {"namespaces", "git", "probe", "line", "bubblewrap", "cgroup"}
PARTIES = ["shell", "launcher", "init", "command"]
if os.environ.get("EFR_SBX_BACKEND") == "bwrap":
    PARTIES[2:2] = ["watcher", "bwrap"]
    ELSEWHERE = {"identity", "network", "read-only root", "pool", "git", "probe", "line", "cgroup"}
    STAGES["launcher"] += ["bubblewrap", "mount sources", "mounts", "proc", "devices"]
    STAGES["init"] = ["start", "plan", "namespaces", "mounts", "directory", "no_new_privs", "landlock",
                      "start of the command", "pid 1"]
failed = []


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def family(shell):
    """The pids of the parties that exist."""
    pids = {"shell": shell}
    for name in PARTIES[1:]:
        below = children(list(pids.values())[-1])
        if not below:
            break
        pids[name] = below[0]
    return pids


def wait_for(pipe, text):
    """Whether text comes before the end of the pipe."""
    seen = b""
    end = time.monotonic() + LIMIT_S
    while text is None or text not in seen:
        if not select.select([pipe], [], [], max(0, end - time.monotonic()))[0]:
            return False
        more = os.read(pipe, 4096)
        if not more:
            return text is None
        seen += more
    return True


def attempt(stage, victim, number):
    directory = "%s.%d" % (call, number)
    os.mkdir(directory, 0o700)
    shutil.copy(call + "/plan", directory)
    out, held = os.pipe()
    env = dict(os.environ, EFR_SBX_STOP_AT=stage)
    shell = subprocess.Popen(["/bin/sh", "-c", '"$0" run --call-dir "$1"; exit $?', launcher, directory],
                             stdin=subprocess.PIPE, stdout=held, stderr=held, env=env)
    os.close(held)
    name = "%s killed at %s" % (victim, stage)
    marker = b"running" if stage == "running" else b"stopped"
    problem = None
    pids = family(shell.pid)
    if not wait_for(out, marker):
        problem = "it never came there"
    else:
        pids = family(shell.pid)
        if victim not in pids:
            problem = "there is no such process"
        else:
            os.kill(pids[victim], signal.SIGKILL)
            # Before the parent death signal is set, the process looks for its parent itself.
            if stage == "init:start" and victim in ("shell", "launcher"):
                shell.stdin.close()
            if not wait_for(out, None):
                problem = "a process of the call lives on"
    if problem and problem != "there is no such process":
        for pid in list(pids.values())[::-1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    shell.stdin.close()
    status = shell.wait()
    os.close(out)
    if problem:
        failed.append("%s: %s" % (name, problem))
        return
    try:
        with open(directory + "/result", "rb") as file:
            result = file.read().split(b"\0")
    except OSError:
        result = []
    if victim not in ("shell", "launcher") and stage != "running" and (
            status != 125 or b"setup_error" not in result or result[result.index(b"started") + 1] != b"0"):
        failed.append("%s: status %d, result %r" % (name, status, result))
    if victim in ("shell", "launcher") and result:
        failed.append("%s: it left a result" % name)
    shutil.rmtree(directory)


def main():
    named = set()
    for path in glob.glob(sources + "/*.c"):
        with open(path) as file:
            named |= set(re.findall(r'\bstage\("([^"]+)"\)', file.read()))
    tried = ELSEWHERE.union(*STAGES.values())
    for stage in named - tried:
        failed.append("no launch is stopped at the stage %s" % stage)
    # A process that is stopped itself counts too.
    victims = {"launcher": PARTIES[:2], "init": PARTIES[:-1], "command": PARTIES}
    number = 0
    for who, stages in STAGES.items():
        for stage in stages:
            for victim in victims[who]:
                # A parent that is gone before the launcher asks who it was is not noticed by it, but by
                # the keeper of the hidden shell (tests/e2e/kill.sh).
                if (stage, victim) == ("parent", "shell"):
                    continue
                number += 1
                attempt(who + ":" + stage, victim, number)
    for victim in victims["command"]:
        number += 1
        attempt("running", victim, number)
    print("\n".join(failed) if failed else "%d launches ended" % number)
    return bool(failed)


sys.exit(main())
