#!/usr/bin/env bash
# The second check of a call that leaves the sandbox: between the question and the start a file, a link, a program, a
# script, PATH's first hit, a remote, git's code, a socket, a directory or a rule changes. The call then does not run, its result
# says what changed, and the next call of the same line is asked about anew. Each with a control run in which
# nothing changes. Not covered: changes after the start.
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
. "$(dirname "$0")/lib_exits.sh"
exits_model
mkdir -p "$HOME/notes" "$HOME/bin0" "$HOME/bin" "$T/evil"
printf 'path=(~/bin0 ~/bin $path)\n' >>"$HOME/.zshrc"
printf '#!/bin/sh\nprintf "ran %%s\\n" "$*" >>"$HOME/ran"\n' >"$HOME/bin/sudo"
printf '#!/bin/sh\nprintf "evil\\n" >>"$HOME/ran"\n' >"$T/evil/sudo"
chmod 755 "$HOME/bin/sudo" "$T/evil/sudo"
cd "$P"
git init -q -b main .
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
git init -q --bare "$T/good.git"
git init -q --bare "$T/evil.git"
git remote add origin "$T/good.git"
project
efr status >/dev/null

# refused CHANGE PROMPT WORDS: with CHANGE between question and yes it does not run.
refused() {
    ask "do:$1" "$2"
    is 'e["tool_call_completed"].get("refusal", {}).get("kind")' changed
    contains "$(output)" 'efr did not run it' "result of $2"
    contains "$(output)" "$3" "result of $2"
    is 'e["exit_judged"]["verdict"]' allow
    say "changed: $3"
}
runs() {
    ask allow "$1"
    is 'e["tool_call_completed"].get("refusal")' None
    is 'len([x for x in o["events"] if x["kind"] == "approval_requested"])' 1
    contains "$(output)" 'exit code 0' "result of $1"
}

echo one >~/notes/a
echo two >~/notes/b
ln -s a ~/notes/l

# A file, a link, a name that was free.
refused 'echo more >>~/notes/a' 'print x >>~/notes/a' '/notes/a changed'
equals "$(cat ~/notes/a)" $'one\nmore' 'the file'
refused 'ln -sfn b ~/notes/l' 'print x >>~/notes/l' '/notes/l changed'
equals "$(cat ~/notes/b)" two 'the other file of the link'
refused "ln -s $HOME/.zshrc ~/notes/free" 'print x >~/notes/free' '/notes/free changed'
lacks "$(cat ~/.zshrc)" '^x$' 'the startup file behind the link'
rm ~/notes/free
runs 'print x >~/notes/free'
equals "$(cat ~/notes/free)" x 'the control'

# A directory that the call asks for.
refused "mv ~/notes ~/notes2; ln -s $HOME/bin ~/notes" $'zsh -c true\nneeds write=~/notes' '/notes changed'
rm ~/notes
mv ~/notes2 ~/notes

# A program, another one earlier in PATH, a script that it is given.
refused "cp $T/evil/sudo ~/bin/sudo" 'sudo true' '/bin/sudo changed'
printf '#!/bin/sh\nprintf "ran %%s\\n" "$*" >>"$HOME/ran"\n' >"$HOME/bin/sudo"
refused "cp $T/evil/sudo ~/bin0/sudo" 'sudo true' 'sudo .* changed'
rm ~/bin0/sudo
printf 'true\n' >"$P/setup.sh"
refused 'echo evil >>setup.sh' 'sudo sh ./setup.sh' '/setup.sh changed'
[[ ! -e ~/ran ]] || fail "something ran: $(cat ~/ran)"
runs 'sudo true'
equals "$(cat ~/ran)" 'ran true' 'the control'

# A remote.
refused "git -C $P remote set-url origin $T/evil.git" 'git push -q origin main' "git's settings changed"
[[ -z $(git -C "$T/good.git" branch) && -z $(git -C "$T/evil.git" branch) ]] || fail 'something was pushed'
git remote set-url origin "$T/good.git"
runs 'git push -q origin main'
contains "$(git -C "$T/good.git" branch)" main 'the control'

# What git runs on the way to it, where a sandboxed command could have written that.
: >helper.sh
: >other.sh
git config --global credential.helper "$P/helper.sh"
ask deny 'git push -q origin main'
contains "$(value 'e["approval_requested"]["reasons"]')" 'git runs .*/p/helper.sh, which a sandboxed command can write'
is 'e["approval_requested"]["exit"]["user_only"]' True
refused "git config --global credential.helper $P/other.sh" 'git push -q origin main' 'the code that git runs changed'
rm ~/.gitconfig

# A socket.
listen() {
    python3 - "$1" <<'EOT' >/dev/null 2>&1 &
import os, signal, socket, sys
s = socket.socket(socket.AF_UNIX)
if os.path.exists(sys.argv[1]): os.unlink(sys.argv[1])
s.bind(sys.argv[1]); s.listen()
with open(sys.argv[1] + ".ready", "w") as f: f.write("up\n")
signal.alarm(60)
while True:
    c, _ = s.accept()
    c.sendall(b"hello\n"); c.close()
EOT
    servers+=($!)
    python3 "$tests/e2e/until.py" "$limit" '^up$' cat "$1.ready" || fail 'no server'
    rm "$1.ready"
}
cat >"$P/talk.py" <<'EOT'
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print("got", s.recv(9))
EOT
servers=()
listen ~/notes/s
needs=$'python3 talk.py ~/notes/s\nneeds sockets=~/notes/s'
runs "$needs"
contains "$(output)" 'got .*hello' 'the control'
refused "mv ~/notes/s ~/notes/s0; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"$HOME/notes/s\")'" "$needs" '/notes/s changed'
kill "${servers[@]}"

# A rule of the user's.
refused "printf '[[permissions.rules]]\naction = \"execute\"\nresource = \"any\"\neffect = \"deny\"\n' >>~/.config/efr/config.toml; efr config reload" \
    'sudo true' 'how the call would run changed'
equals "$(cat ~/ran)" 'ran true' 'what ran in all'
