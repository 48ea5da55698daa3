-- Programs that meet the terminal, and what the hidden shell makes of each: one row a program, run for
-- real by spec/shell/terminal_programs_spec.lua, outside of the sandbox and inside.
--
--   name     of the row
--   line     the command line, run in a directory of its own
--   program  what must be installed besides python3, bash and zsh; a row without it is left out and counted
--   files    name -> text, made before
--   waits    the waits that are reported, in order: "hidden", "visible", "visible!" (looks secret), "none"
--   answers  what a person types at them, one each; "" takes a default
--   stands   for a program that goes on: how it waits ("input", "keys", "full_screen"); it is ended then
--   quit     the keys that end it; default: SIGINT
--   nobody   hidden input that nobody can give ends it
--   stop     the turn is interrupted at the first wait
--   text     a plain text, or several, that the output holds
--   lacks    a plain text that it does not hold
--   code     exit status, default 0
--   user     "root" or "other": only as such a user
--   place    "outside" or "contained": only there
--   inside   fields that differ in the sandbox. secret = true: the command is stopped, no answer is typed
--   ci       part of the short run

local SECRET <const> = { secret = true }

-- A python program that asks at descriptor 0 in its own way; WAIT is the way.
local function python(text)
  return ([[
import os, select, sys, termios, threading, time, tty
def show(text):
    sys.stdout.write(text); sys.stdout.flush()
]] .. text)
end

local REPO <const> = "git init -q . && git config user.email a@b && git config user.name n && seq 9 >f && "
  .. "git add f && git commit -qm one && echo x >>f && "

return {
  -- Lines without echo.
  { name = "bash read -s", line = [[bash -c 'read -s -p "Token: " t; echo; echo "n${#t}"']], waits = "hidden none",
    answers = { "abc d" }, text = "n5", inside = SECRET, ci = true },
  { name = "zsh read -s", line = [[zsh -fc 'read -s "t?Token: "; echo; echo n$#t']], waits = "hidden none",
    answers = { "abc" }, text = "n3", inside = SECRET },
  { name = "getpass", line = [[python3 -c 'import getpass; print("n", len(getpass.getpass("Key: ")))']],
    waits = "hidden none", answers = { "äöü" }, text = "n 3", inside = SECRET },
  { name = "getpass, asked twice",
    line = [[python3 -c 'import getpass as g; print(g.getpass("A: ") == g.getpass("B: "))']],
    waits = "hidden none hidden none", answers = { "x", "x" }, text = "True", inside = SECRET, ci = true },
  { name = "ssh-keygen", line = "ssh-keygen -q -t ed25519 -f key && ls key.pub", program = "ssh-keygen",
    waits = "hidden none hidden none", answers = { "secret", "secret" }, text = "key.pub", inside = SECRET, ci = true },
  { name = "openssl passwd", line = "openssl passwd -6 | cut -c1-3", program = "openssl",
    waits = "hidden none hidden none", answers = { "a", "a" }, text = "$6$", inside = SECRET },
  { name = "openssl enc", line = "echo x | openssl enc -aes-256-cbc -pbkdf2 -a | wc -l", program = "openssl",
    waits = "hidden none hidden none", answers = { "a", "a" }, text = "1", inside = SECRET },
  { name = "stty -echo; read", line = [[sh -c 'stty -echo; printf "Pin "; read a; stty echo; echo; echo "n${#a}"']],
    waits = "hidden none", answers = { "1234" }, text = "n4", inside = SECRET },
  { name = "su", line = "su -c id nobody", program = "su", user = "other", place = "outside", waits = "hidden none",
    answers = { "wrong" }, text = "failure", code = 1 },
  { name = "sudo", line = "sudo -k; sudo -S -p 'Pw: ' true </dev/tty", program = "sudo", user = "other",
    place = "outside", waits = "hidden", stop = true },
  { name = "passwd", line = "passwd", program = "passwd", user = "other", place = "outside", nobody = true },
  { name = "passwd of another", line = "passwd nobody", program = "passwd", user = "root", place = "outside",
    nobody = true },
  { name = "getpass, and nobody answers", line = [[python3 -c 'import getpass; getpass.getpass()']], place = "outside",
    nobody = true, ci = true },

  -- Questions in a row.
  { name = "sh read", line = [[sh -c 'printf "Go on? [y/N] "; read a; echo "it is $a"']], waits = "visible none",
    answers = { "y" }, text = "it is y", ci = true },
  { name = "bash read -p", line = [[bash -c 'read -p "Name: " n; echo "hi $n"']], waits = "visible none",
    answers = { "Ada L" }, text = "hi Ada L" },
  { name = "zsh read", line = [[zsh -fc 'read "n?Name: "; echo hi $n']], waits = "visible none", answers = { "x" },
    text = "hi x" },
  { name = "zsh read -q", line = [[zsh -fc 'read -q "?Sure? " && echo yes']], waits = "visible none",
    answers = { "y" }, text = "yes" },
  { name = "bash read -n1", line = [[bash -c 'read -n1 -p "Key? " k; echo "=$k"']], waits = "visible none",
    answers = { "q" }, text = "=q" },
  { name = "python input", line = [[python3 -c 'print("it is", input("Name: "))']], waits = "visible none",
    answers = { "宽" }, text = "it is 宽" },
  { name = "python input with readline", line = [[python3 -c 'import readline; print("it is", input("Name: "))']],
    waits = "visible none", answers = { "bob" }, text = "it is bob" },
  { name = "an empty answer", line = [[bash -c 'read -p "Port [80]: " p; echo "port ${p:-80}"']],
    waits = "visible none", answers = { "" }, text = "port 80" },
  { name = "perl", line = [[perl -e '$|=1; print "Name: "; $n = <STDIN>; print "hi $n"']], program = "perl",
    waits = "visible none", answers = { "x" }, text = "hi x" },
  { name = "rm -i", line = "rm -i f; ls",
    program = "rm", files = { f = "x" }, waits = "visible none", answers = { "y" },
    lacks = "\nf\n", ci = true },
  { name = "cp -i", line = "cp -i a b; cat b", files = { a = "new", b = "old" }, waits = "visible none",
    answers = { "n" }, text = "old" },
  { name = "mv -i", line = "mv -i a b; cat b", files = { a = "new", b = "old" }, waits = "visible none",
    answers = { "y" }, text = "new" },
  { name = "find -ok", line = [[find . -name f -ok echo found {} \;]], files = { f = "" }, waits = "visible none",
    answers = { "y" }, text = "found ./f" },
  { name = "xargs -p", line = "echo a | xargs -p echo got", waits = "visible none", answers = { "y" }, text = "got a" },
  { name = "git add -p", line = REPO .. "git add -p && git diff --cached --stat", program = "git",
    waits = "visible none", answers = { "y" }, text = "1 file changed", ci = true },
  { name = "git clean -i", line = REPO .. "touch junk && git clean -i", program = "git", waits = "visible none",
    answers = { "5" }, text = "Bye." },
  { name = "npm init", line = "npm init", program = "npm", waits = "visible", stop = true, text = "package name" },
  { name = "ed with a prompt", line = "ed -p'ed> ' f", program = "ed", files = { f = "x\n" }, waits = "visible none",
    answers = { "q" } },
  { name = "more", line = "more f", program = "more", files = { f = ("line\n"):rep(200) }, waits = "visible none",
    answers = { "q" }, text = "line" },
  { name = "pdb", line = "python3 -m pdb p.py", files = { ["p.py"] = "x = 1\n" }, waits = "visible none",
    answers = { "q" }, text = "x = 1" },
  { name = "two shells deep", line = [[bash -c 'bash -c "read -p Deep: x; echo got \$x"']], waits = "visible none",
    answers = { "it" }, text = "got it" },
  { name = "a question asked again",
    line = [[sh -c 'for i in 1 2 3; do printf "Number $i? "; read a; done; echo "last $a"']],
    waits = "visible none visible none visible none", answers = { "a", "b", "c" }, text = "last c", ci = true },
  { name = "of /dev/tty", line = [[echo in | sh -c 'printf "Q: "; read a </dev/tty; read b; echo "$a$b"']],
    waits = "visible none", answers = { "out" }, text = "outin" },
  { name = "a prompt of two rows",
    line = [[python3 -c 'print("it is", input("Is this " + "very " * 30 + "long? "))']],
    waits = "visible none", answers = { "yes" }, text = "it is yes" },
  { name = "names a password in line mode", line = [[python3 -c 'input("Password: ")']], waits = "visible none",
    answers = { "x" }, inside = SECRET, ci = true },
  { name = "a password behind a relay",
    line = [[script -qec "python3 -c 'import getpass; print(getpass.getpass() == str(7))'" /dev/null]],
    program = "script", place = "outside", waits = "visible! none", answers = { "7" }, text = "True", ci = true },
  { name = "a code in raw mode", line = "python3 raw.py", waits = "visible! none", answers = { "" }, inside = SECRET,
    files = { ["raw.py"] = python [[
old = termios.tcgetattr(0); tty.setcbreak(0); show("Verification code: ")
os.read(0, 9); termios.tcsetattr(0, termios.TCSANOW, old)
]] } },

  -- Ways to wait.
  { name = "select", line = "python3 w.py", waits = "visible none", answers = { "a" }, text = "got b'a\\n'",
    files = { ["w.py"] = python 'show("Q: "); select.select([0, 1], [], [0]); print("got", os.read(0, 9))\n' },
    ci = true },
  { name = "poll", line = "python3 w.py", waits = "visible none", answers = { "a" }, text = "got b'a\\n'",
    files = { ["w.py"] = python [[
p = select.poll(); p.register(0, select.POLLIN); show("Q: "); p.poll(60000); print("got", os.read(0, 9))
]] }, ci = true },
  { name = "epoll", line = "python3 w.py", waits = "visible none", answers = { "a" }, text = "got b'a\\n'",
    files = { ["w.py"] = python [[
p = select.epoll(); p.register(0, select.EPOLLIN); show("Q: "); p.poll(60); print("got", os.read(0, 9))
]] }, ci = true },
  { name = "a thread", line = "python3 w.py", waits = "visible none", answers = { "a" }, text = "got b'a\\n'",
    files = { ["w.py"] = python [[
def work():
    print("got", os.read(0, 9))
show("Q: "); t = threading.Thread(target=work); t.start(); t.join()
]] } },
  { name = "a key in raw mode", line = "python3 w.py", waits = "visible none", answers = { "" }, text = "got b'\\r'",
    files = { ["w.py"] = python [[
old = termios.tcgetattr(0); tty.setraw(0); show("Any key "); got = os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, old); print("got", got)
]] }, ci = true },
  { name = "a child that is not dumpable", line = "python3 w.py", waits = "visible none", answers = { "a" },
    text = "got b'a\\n'", files = { ["w.py"] = python [[
import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); show("Name: "); print("got", os.read(0, 9))
]] } },

  -- Shells and interpreters: nobody is asked.
  { name = "python", line = "python3 -q", stands = "input", quit = "exit()\r", ci = true },
  { name = "node", line = "node", program = "node", stands = "input", quit = ".exit\r" },
  { name = "bash", line = "bash --norc", stands = "input", quit = "exit\r", ci = true },
  { name = "zsh", line = "zsh -f", stands = "input", quit = "exit\r" },
  { name = "sqlite3", line = "sqlite3", program = "sqlite3", stands = "input", quit = ".quit\r" },
  { name = "gdb", line = "gdb -q", program = "gdb", stands = "input", quit = "quit\r" },
  { name = "tclsh", line = "tclsh", program = "tclsh", stands = "input", quit = "exit\r" },
  { name = "lua", line = "lua5.4", program = "lua5.4", stands = "input", quit = "os.exit()\r" },

  -- Programs that take lines or keys without a prompt, and those that fill the screen.
  { name = "cat", line = "cat", stands = "input", ci = true },
  { name = "jq", line = "jq .", program = "jq", stands = "input" },
  { name = "ed", line = "ed f", program = "ed", files = { f = "x\n" }, stands = "input", quit = "q\r" },
  { name = "less", line = "LESSHISTFILE=- less f", program = "less", files = { f = ("line\n"):rep(200) },
    stands = "full_screen", quit = "q", ci = true },
  { name = "vim", line = "vim -u NONE -i NONE f", program = "vim", files = { f = "x\n" }, stands = "full_screen",
    quit = ":q!\r", ci = true },
  { name = "top", line = "top", program = "top", stands = "keys", quit = "q" },
  { name = "curses", line = "python3 w.py", stands = "full_screen", quit = "\r",
    files = { ["w.py"] = "import curses\ncurses.wrapper(lambda s: (s.addstr(3, 3, 'Ok?'), s.getch()))\n" } },
  { name = "keys without text", line = "python3 w.py", stands = "keys", quit = "x",
    files = { ["w.py"] = python [[
old = termios.tcgetattr(0); tty.setcbreak(0); show("press\n"); os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, old)
]] } },

  -- No wait at all.
  { name = "sleep", line = "sleep 1.3", ci = true },
  { name = "busy behind a text", line = [[python3 -c 'import time
print("Compiling ", end="", flush=True); t = time.time()
while time.time() - t < 1.3: pass']], text = "Compiling", ci = true },
  { name = "make and cc", line = "make -j2", program = "make",
    files = { Makefile = "all: a.o b.o\n%.o: %.c\n\t@printf 'cc $<? '; sleep 0.5; cc -O2 -c $<\n", ["a.c"] = "int a;\n",
      ["b.c"] = "int b;\n" }, text = "a.c" },
  { name = "echo off, and nobody reads", line = "sh -c 'stty -echo; sleep 1.3; stty echo; echo end'",
    text = "end", ci = true },
  { name = "looks at the terminal between steps", line = "python3 w.py", text = "Step",
    files = { ["w.py"] = python [[
show("Step 1: "); end = time.time() + 1.3
while time.time() < end: select.select([0], [], [], 0)
]] } },
  { name = "says password and works", line = [[sh -c 'printf "Checking password: "; sleep 1.3; echo good']],
    text = "good" },
  { name = "a bar of dots", line = [[bash -c 'for i in {1..8}; do printf .; sleep 0.2; done; echo']],
    text = "........" },
  { name = "a daemon that keeps the terminal", line = "python3 w.py", text = "started", files = { ["w.py"] = python [[
if os.fork() == 0:
    os.setsid(); time.sleep(1.5); os._exit(0)
show("started\n")
]] }, ci = true },
  { name = "git commit without a message", line = REPO .. "git commit -a", program = "git", code = 1, text = "editor" },
  { name = "changes the terminal and dies", line = "python3 w.py", code = 137, files = { ["w.py"] = python [[
tty.setraw(0); show("\033[?1049h\033[?25l"); os.kill(os.getpid(), 9)
]] }, ci = true },
}
