#!/usr/bin/env bash
# `efr run -- CMD`: the user's own command in the sandbox, on the user's own terminal: output streams,
# the exit status is kept, writes outside fail, the terminal is put back. No model is asked.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function() error("no model may be asked") end
EOF
printf 'kept\n' >"$HOME/outside"
cd "$P"
project
equals "$(efr run -- echo hello 'two  words' '*')" 'hello two  words *' 'output'
rc=0
efr run -- sh -c 'exit 41' || rc=$?
equals $rc 41 'exit status'
rc=0
efr run -- sh -c 'kill -TERM $$' || rc=$?
equals $rc 143 'status after a signal'
rc=0
efr run -- no-such-program-here 2>"$T/err" || rc=$?
equals $rc 127 'status of a missing program'
contains "$(cat "$T/err")" 'no-such-program-here' 'the missing program'
rc=0
efr run -- sh -c "echo x > '$HOME/outside'" 2>"$T/err" || rc=$?
[[ $rc != 0 ]] || fail 'a write outside passed'
equals "$(cat "$HOME/outside")" kept 'the file outside'
efr run -- sh -c 'echo in > made'
equals "$(cat made)" in 'a write in the project'
equals "$(printf 'from stdin' | efr run -- cat)" 'from stdin' 'standard input'
# sandbox.protect is read-only also inside the project.
mkdir keep
printf '[sandbox]\nprotect = ["%s/keep"]\n' "$P" >>"$HOME/.config/efr/config.toml"
efr config reload >/dev/null
rc=0
efr run -- sh -c 'echo x > keep/file' 2>"$T/err" || rc=$?
contains "$rc $(cat "$T/err")" '^[1-9].*Read-only file system' 'a write below a protected path'
[[ ! -e keep/file ]] || fail 'a protected path was written'
# Outside a project: --write is needed where no question can be asked.
mkdir "$HOME/other"
cd "$HOME/other"
rc=0
efr run -- true 2>"$T/err" </dev/null || rc=$?
[[ $rc != 0 ]] || fail 'ran outside a project without --write'
contains "$(cat "$T/err")" -- '--write' 'the way out'
efr run --write "$HOME/other" -- sh -c 'echo in > made'
equals "$(cat made)" in 'a write with --write'

# On a terminal: the question, and the terminal is put back whatever the command leaves behind.
terminal
type_line 'cd ~/other; efr run -- sh -c "stty raw -echo; echo raw-$((5+5))"'
see 'write in .*other'
mark
keys y
see 'raw-10'
mark
type_line 'stty -a | tr " " "\n" | grep -x -e -icanon -e -echo; print tty-$((6+6))'
see 'tty-12'
lacks "$(tail -c +"$((seen + 1))" "$T/screen" | plain)" '^-(icanon|echo)$' 'the terminal modes'
