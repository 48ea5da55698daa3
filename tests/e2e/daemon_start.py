"""daemon_start.py DIR: the cases of daemon_start.sh. Each gets a fresh EFR_HOME below DIR.

Owns: starting efrd and waiting for its READY=1, like a service manager. No sleeps.
"""
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Client  # noqa: E402

BASE = sys.argv[1]
EFRD = os.path.join(os.environ["EFR_BIN"], "efrd")
EFR = os.path.join(os.environ["EFR_BIN"], "efr")
GONE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gone.py")
LIMIT = 30


class Home:
    """A fresh EFR_HOME and the daemons that run in it."""

    def __init__(self, name):
        self.dir = os.path.join(BASE, name)
        os.mkdir(self.dir, 0o700)
        self.running = []
        self.env = {"HOME": os.path.join(BASE, "home"), "PATH": "/usr/bin:/bin", "EFR_HOME": self.dir}

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def socket(self):
        return self.path("runtime", "daemon.sock")

    def start(self, env=None, **options):
        """Starts efrd and waits until it says that it is ready. Returns the process."""
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = os.path.join(BASE, "n")
        if os.path.exists(name):
            os.unlink(name)
        notify.bind(name)
        notify.settimeout(LIMIT)
        all_env = dict(self.env, NOTIFY_SOCKET=name, **(env or {}))
        process = subprocess.Popen([EFRD], env=all_env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        self.running.append(process)
        while b"READY=1" not in notify.recv(4096):
            pass
        notify.close()
        return process

    def refused(self, *words, env=None):
        """efrd must end with an error that has all the words. Returns the text."""
        done = subprocess.run([EFRD], env=dict(self.env, **(env or {})), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=LIMIT, check=False)
        text = done.stderr.decode()
        assert done.returncode == 1, (done.returncode, text)
        for word in words:
            assert word in text, (word, text)
        return text

    def own_files(self):
        """What the connection side has in the runtime root, staging directories too."""
        names = os.listdir(self.path("runtime"))
        return sorted(n for n in names if n.startswith(("daemon.", ".")))

    def client(self):
        return Client(self.socket, LIMIT)

    def status(self):
        client = self.client()
        try:
            return client.request("admin.status", {})
        finally:
            client.sock.close()

    def stop(self, process, how=signal.SIGTERM):
        process.send_signal(how)
        process.wait(LIMIT)
        self.running.remove(process)
        process.stderr.close()
        return process.returncode

    def end(self):
        for process in list(self.running):
            self.stop(process, signal.SIGKILL)


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def start_and_stop(home):
    process = home.start()
    assert mode(home.socket) == 0o600
    assert mode(home.path("runtime")) == mode(home.path("data")) == 0o700
    assert mode(home.path("data", "efr.sqlite")) == 0o600
    with open(home.path("runtime", "daemon.json"), encoding="utf-8") as file:
        info = json.load(file)
    status = home.status()
    assert info["pid"] == process.pid == status["pid"]
    assert info["protocol"] == 1 and info["socket"] == home.socket
    assert info["boot_id"]
    assert info["daemon_id"] == status["daemon_id"]
    assert home.own_files() == ["daemon.json", "daemon.sock"]
    idle = home.client()  # a connection that is open does not hold the stop
    assert home.stop(process) == 0
    assert idle.file.read() == b""
    assert home.own_files() == []
    assert home.stop(home.start(), signal.SIGINT) == 0


def one_daemon(home):
    first = home.start()
    home.refused("another efrd is running")
    assert home.status()["pid"] == first.pid
    # another data directory, the same socket: it answers, so it is not taken over
    other = home.path("other")
    home.refused("answers on " + home.socket, env={"EFR_DATA_DIR": other})
    assert home.status()["pid"] == first.pid
    assert home.stop(first) == 0


def old_is_stopping(home):
    """efr meets an efrd that holds its lock a little longer: it waits, and starts its own."""
    home.stop(home.start())
    lock = os.open(home.path("data", "daemon.lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    log = home.path("state", "logs", "efrd.log")
    os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        file.write("an old line\n")
    tail = subprocess.Popen(["tail", "-n", "+1", "-f", log], stdout=subprocess.PIPE, text=True)
    efr = subprocess.Popen([EFR, "status"], env=home.env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while "another efrd is running" not in tail.stdout.readline():
            pass
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()
    os.close(lock)
    text = efr.communicate(timeout=LIMIT)[0]
    assert efr.returncode == 0, text
    pid = home.status()["pid"]
    os.kill(pid, signal.SIGTERM)
    subprocess.run([sys.executable, GONE, str(LIMIT), str(pid)], check=True)


def killed(home):
    first = home.start()
    before = home.status()["daemon_id"]
    home.stop(first, signal.SIGKILL)
    assert os.path.exists(home.socket)
    second = home.start()
    assert home.status()["daemon_id"] == before
    assert home.stop(second) == 0
    assert home.own_files() == []


def not_our_socket(home):
    os.mkdir(home.path("runtime"), 0o700)
    with open(home.socket, "w", encoding="utf-8") as file:
        file.write("precious")
    home.refused(home.socket, "is no socket")
    with open(home.socket, encoding="utf-8") as file:
        assert file.read() == "precious"
    os.unlink(home.socket)
    process = home.start()
    os.rename(home.socket, home.path("runtime", "moved"))  # somebody put his own file there
    with open(home.socket, "w", encoding="utf-8") as file:
        file.write("precious")
    assert home.stop(process) == 0
    assert os.path.exists(home.socket)


def long_path(home):
    runtime = home.path("r" * 100)
    home.refused("longer than 107 bytes", "EFR_RUNTIME_DIR", env={"EFR_RUNTIME_DIR": runtime})
    assert os.listdir(home.dir) == []


def open_roots(home):
    for name in ("data", "state", "runtime"):
        os.mkdir(home.path(name))
        os.chmod(home.path(name), 0o750)
        home.refused(name + " directory", "chmod 700 " + home.path(name))
        os.chmod(home.path(name), 0o700)
    os.mkdir(home.path("config"))
    os.chmod(home.path("config"), 0o775)
    home.refused("config directory", "chmod go-w " + home.path("config"))
    os.chmod(home.path("config"), 0o755)
    assert home.stop(home.start()) == 0
    shutil.rmtree(home.path("state"))
    with open(home.path("state"), "w", encoding="utf-8"):
        pass
    home.refused("state directory", "is no directory")


def foreign_roots(home):
    if os.getuid() != 0:
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(home.dir, nobody, -1)  # the HOME of a user, efrd under sudo
    home.refused("belongs to uid %d" % nobody, "EFR_HOME")
    assert os.listdir(home.dir) == []
    os.chown(home.dir, 0, -1)
    os.mkdir(home.path("data"), 0o700)
    os.chown(home.path("data"), nobody, -1)
    home.refused("data directory", "belongs to uid %d" % nobody)


def default_roots(home):
    """Without EFR_HOME and XDG_RUNTIME_DIR: below HOME, or /run/user."""
    own = home.path("h")
    os.mkdir(own, 0o700)
    env = {"HOME": own, "EFR_HOME": "", "XDG_RUNTIME_DIR": ""}
    system = "/run/user/%d" % os.getuid()
    if os.path.isdir(system) and mode(system) == 0o700:
        env["EFR_RUNTIME_DIR"] = os.path.join(own, "run")
        run = env["EFR_RUNTIME_DIR"]
    else:
        run = os.path.join(own, ".local/state/efr/run")
    process = home.start(env=env)
    roots = Client(os.path.join(run, "daemon.sock"), LIMIT).request("admin.status", {})["roots"]
    assert roots["runtime"]["path"] == run, roots
    assert roots["data"] == {"path": os.path.join(own, ".local/share/efr"), "source": "xdg"}, roots
    assert roots["config"]["path"] == os.path.join(own, ".config/efr"), roots
    assert home.stop(process) == 0


def systemd_socket(home):
    os.mkdir(home.path("runtime"), 0o700)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(home.socket)
    listening.listen()
    fd = listening.fileno()

    # The pid is known only in the child, so a shell passes it on.
    command = 'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$0" 3<&%d' % fd
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = os.path.join(BASE, "n2")
    notify.bind(name)
    notify.settimeout(LIMIT)
    process = subprocess.Popen(["/bin/sh", "-c", command, EFRD], pass_fds=[fd],
                               env=dict(home.env, NOTIFY_SOCKET=name), stderr=subprocess.PIPE)
    home.running.append(process)
    while b"READY=1" not in notify.recv(4096):
        pass
    notify.close()
    assert home.status()["pid"] == process.pid
    assert home.stop(process) == 0
    assert os.path.exists(home.socket)  # it is systemd's
    listening.close()


def reload(home):
    os.mkdir(home.path("config"), 0o700)
    process = home.start()
    config = home.path("config", "config.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("nonsense = 1\n")
    process.send_signal(signal.SIGHUP)
    client = home.client()
    while not client.request("admin.status", {})["config"].get("reload_error"):
        pass
    answer = client.request("admin.config_reload", {})
    assert answer["applied"] is False and "nonsense" in answer["error"]["message"], answer
    with open(config, "w", encoding="utf-8") as file:
        file.write('[model]\nprovider = "scripted"\n')
    process.send_signal(signal.SIGHUP)
    while client.request("admin.status", {})["config"].get("reload_error"):
        pass
    assert client.request("admin.config_reload", {})["restart_needed"] == ["model.provider"]
    assert home.stop(process) == 0
    with open(config, "w", encoding="utf-8") as file:
        file.write("nonsense = 1\n")
    home.refused("nonsense", config)


def refused_database(home):
    home.stop(home.start())
    database = home.path("data", "efr.sqlite")
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    os.mkdir(home.path("data", "backups"), 0o700)
    backup = home.path("data", "backups", "efr.sqlite.1")
    shutil.copy(database, backup)
    home.refused("newer", backup)
    with open(database, "wb") as file:
        file.write(b"garbage " * 1000)
    home.refused(database, backup)
    with open(database, "rb") as file:
        assert file.read(7) == b"garbage"


def copies_in_memory(pid, needle):
    count = 0
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, \
            open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            span, access = line.split()[:2]
            if "r" not in access or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            memory.seek(start)
            count += memory.read(end - start).count(needle)
    return count


def wiped_input(home):
    """A message may carry a key: it does not stay in the daemon's memory."""
    process = home.start()
    client = home.client()
    secret = "needle-" + "in-a-haystack-0123456789"
    client.request("projects.list", {"unknown": secret})
    for _ in range(3000):
        client.request("conversations.list", {})
    assert copies_in_memory(process.pid, secret.encode()) == 0
    client.sock.close()
    assert home.stop(process) == 0


CASES = [start_and_stop, one_daemon, old_is_stopping, killed, not_our_socket, long_path, open_roots, foreign_roots,
         default_roots, systemd_socket, reload, wiped_input,
         refused_database]


def main():
    failed = 0
    for case in CASES:
        home = Home(case.__name__[:8])
        try:
            case(home)
            print("ok   " + case.__name__)
        except Exception:  # noqa: BLE001 - a failed case is reported, the others go on
            failed += 1
            print("FAIL " + case.__name__)
            traceback.print_exc(file=sys.stdout)
        finally:
            for process in home.running:
                process.kill()
                if process.stderr:
                    print(process.stderr.read().decode())
            home.end()
    sys.exit(1 if failed else 0)


main()
