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
# A directory whose name is no UTF-8, and that the sandbox refuses: the error says why.
mkdir "$P/"$'p\xff\nx'
cd "$P/"$'p\xff\nx'
rc=0
efr run -- true 2>"$T/err" </dev/null || rc=$?
[[ $rc != 0 ]] || fail 'a directory that is no project was written'
lacks "$(cat "$T/err")" 'internal error' 'an error that names the directory'
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
sandbox_key "protect = [\"$P/keep\"]"
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

# A file, nothing but a file, variables, the time limit.
printf 'old\n' >file
efr run --write file -- sh -c 'echo new > file'
equals "$(cat file)" new 'a write to a granted file'
rc=0
efr run --write file -- sh -c 'echo x > beside' 2>"$T/err" || rc=$?
contains "$rc $(cat "$T/err")" '^[1-9].*Read-only file system' 'a write beside a granted file'
rc=0
efr run --write "$HOME/none" -- true 2>"$T/err" || rc=$?
equals $rc 2 'a grant of a file that is not there'
rc=0
efr run --write "$HOME/.zshrc" -- true 2>"$T/err" || rc=$?
contains "$rc $(cat "$T/err")" '^125.*is protected' 'a grant of a start-up file'
cd "$P"
rc=0
efr run --ro -- sh -c 'echo x > /tmp/mine && cat made && echo x > made' >"$T/out" 2>"$T/err" || rc=$?
contains "$rc $(cat "$T/err")" '^[1-9].*Read-only file system' 'a write with --ro'
equals "$(cat "$T/out" made)" $'in\nin' 'reading with --ro'
cd "$HOME/other"
efr run --ro -- true </dev/null || fail '--ro needs no question'
cd "$P"
export MY_TOKEN=secret MY_AUTH=secret SSH_AUTH_SOCK=/nowhere GOPROXY=https://mirror.test
# shellcheck disable=SC2016
show='echo "${MY_TOKEN-none} ${MY_AUTH-none} ${SSH_AUTH_SOCK-none} $GOPROXY ${NEW-none} $TMPDIR"'
equals "$(efr run -- sh -c "$show")" 'none none none off none /tmp' 'variables'
equals "$(efr run --env MY_TOKEN --env SSH_AUTH_SOCK --env GOPROXY --env 'NEW=a b=c' -- sh -c "$show")" \
    'secret none /nowhere https://mirror.test a b=c /tmp' 'variables that were asked for'
for name in TMPDIR XDG_RUNTIME_DIR=/x EFR_SANDBOX=0 'a b' =; do
    rc=0
    efr run --env "$name" -- true 2>"$T/err" || rc=$?
    [[ $rc != 0 ]] || fail "--env $name was taken"
    contains "$(cat "$T/err")" 'efr sets it itself' "--env $name"
done
rc=0
efr run --timeout 1 -- sh -c 'trap "" TERM; echo up; sleep 100' >"$T/out" 2>"$T/err" || rc=$?
equals "$rc $(cat "$T/out")" '124 up' 'the time limit'
contains "$(cat "$T/err")" 'ended after 1s' 'the words for it'
for time in 0 -1 1d x 999h 99999999999s; do
    rc=0
    efr run --timeout="$time" -- true 2>"$T/err" || rc=$?
    equals $rc 2 "--timeout $time"
done
rc=0
efr run --cache other -- true 2>"$T/err" || rc=$?
equals $rc 2 'an unknown cache mode'
mkdir -p "$HOME/.cache/tool"
efr run --cache overlay -- sh -c 'echo kept > ~/.cache/tool/f'
equals "$(efr run --cache overlay -- cat "$HOME/.cache/tool/f")" kept 'a kept layer'
rc=0
efr run --cache readonly -- sh -c 'echo x > ~/.cache/tool/f' 2>"$T/err" || rc=$?
contains "$rc $(cat "$T/err")" '^[1-9].*Read-only file system' 'a cache that cannot be written'
[[ ! -e $HOME/.cache/tool/f ]] || fail 'the real cache was written'

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

printf 'import termios\ntermios.tcflow(1, termios.TCOOFF)\n' >"$HOME/other/stop.py"
# The same for stopped output, and for a launcher that is killed.
mark
type_line "efr run --ro -- sh -c 'stty raw -echo; python3 stop.py'; print end-\$((7+7))"
see 'end-14'
mark
type_line 'efr run --ro -- sh -c "stty raw -echo; echo up-\$((8+8)); exec sleep 100"; print over-$((3+3))'
see 'up-16'
kill -KILL "$(pgrep -o -f "run --call-dir $HOME/")" || fail 'no launcher'
see 'over-6'
mark
type_line 'stty -a | tr " " "\n" | grep -x -e -icanon -e -echo; print tty-$((9+9))'
see 'tty-18'
lacks "$(tail -c +"$((seen + 1))" "$T/screen" | plain)" '^-(icanon|echo)$' 'the modes after a killed launcher'
