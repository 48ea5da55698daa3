#!/usr/bin/env bash
# cautious and the real hidden zsh: a program that is named like a read-only one runs with no question
# only where the shell's own PATH leads to no file that may change without one. The PATH comes from the
# user's start-up file, from a call before, or holds the directory itself; `hash` changes nothing. Not
# covered: which directories count (spec/perm/program_search_spec.lua).
. "$(dirname "$0")/lib.sh"
new_home
config cautious
printf '[conversation]\napproval_timeout_secs = 1\n' >>"$HOME/.config/efr/config.toml"
project
mkdir "$P/bin"
printf '#!/bin/sh\ntouch "%s/RAN"\n' "$T" >"$P/bin/evil"
chmod +x "$P/bin/evil"

# run LINE...: one conversation whose calls are these lines.
run() {
    {
        printf 'local lines = {'
        printf '[==[%s]==],' "$@"
        printf '}\nreturn function(request)\n'
        printf '  local line = lines[request.call + 1]\n'
        printf '  return line and { calls = { { name = "shell", input = { command = line } } } } or { text = "end" }\n'
        printf 'end\n'
    } | model
    sqlite3 "$db" 'SELECT 1' >/dev/null 2>&1 && stop_daemon
    last=$(sqlite3 "$db" 'SELECT max(seq) FROM events' 2>/dev/null) || last=0
    efr new >/dev/null 2>&1 || true
    efr send -- go >"$T/out" 2>"$T/err" || true
    questions=$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_requested' AND seq > ${last:-0}")
    reasons=$(sqlite3 "$db" "SELECT payload FROM events WHERE kind = 'approval_requested' AND seq > ${last:-0}")
}

# The control: the user's own PATH.
printf 'x\n' >"$P/a.txt"
cd "$P"
run 'cat a.txt' 'ls bin' 'git --version >/dev/null; command -v ls'
equals "$questions" 1 'questions of lines that only read, and of one that efr does not know'

# A start-up file puts the project first; the program is written without a question and named later.
cp "$P/bin/evil" "$P/bin/wc"
printf 'path=(%s/bin $path)\n' "$P" >>"$HOME/.zshrc"
run 'wc a.txt' 'pwd'
equals "$questions" 1 'a program of the project'
contains "$reasons" "$P/bin lies in $P, where files can change without a question" 'the reason'
[[ ! -e $T/RAN ]] || fail 'a program of the project ran without a question'

# The directory itself, and an empty entry.
sed -i '$d' "$HOME/.zshrc"
cp "$P/bin/evil" "$P/ls"
printf 'PATH=:$PATH\n' >>"$HOME/.zshrc"
run 'ls'
equals "$questions" 1 'an empty entry'
[[ ! -e $T/RAN ]] || fail 'a program of the directory ran without a question'
sed -i '$d' "$HOME/.zshrc"

# A call before changes the PATH and the table of programs.
cat >>"$HOME/.config/efr/config.toml" <<END
[[permissions.rules]]
action = "execute"
resource = "any"
effect = "allow"
[[permissions.rules]]
action = "execute"
resource = { command = { program = "wc" } }
effect = "ask"
END
printf '[[permissions.rules]]\naction = "execute"\nresource = { command = { program = "cat" } }\neffect = "allow"\n' \
    >>"$HOME/.config/efr/config.toml"
cp "$P/bin/evil" "$P/bin/cat"
run "hash cat=$P/bin/cat" 'cat a.txt'
equals "$questions" 0 'a hashed name'
[[ ! -e $T/RAN ]] || fail 'a hashed program ran'
run 'cat a.txt' "path=($P/bin "'$path)' 'cat a.txt'
equals "$questions" 1 'a PATH that a call changed'
[[ ! -e $T/RAN ]] || fail 'a program of the project ran after a change of the PATH'
