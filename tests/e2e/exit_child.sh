#!/usr/bin/env bash
# A line outside of the sandbox, in the hidden shell's terminal: on a real terminal the card shows what a yes means, y
# runs it, and it takes a password there; what it left behind ends with it; an interrupt and the death of efrd end all
# of it; a state of the sandbox and an alias of the user's are not there. Not covered: the launcher alone
# (tests/sbx/outside.sh), who decides (exits.sh).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
. "$(dirname "$0")/lib_exits.sh"
exits_model
export EFR_RUNTIME_DIR=$T/rt
run=$EFR_RUNTIME_DIR
mkdir -p ~/bin
# A sudo of the test's own: asks on the terminal where a password is wanted, else leaves processes behind.
cat >~/bin/sudo <<'EOT'
#!/bin/sh
case $1 in
ask)
    stty -echo </dev/tty
    printf '[sudo] password for you: ' >/dev/tty
    read -r word </dev/tty
    stty echo </dev/tty
    printf '\nlength %d\n' "${#word}"
    ;;
leave)
    setsid sh -c 'trap "" TERM; echo $$ >>"$HOME/pids"; exec sleep 901' &
    while [ ! -s "$HOME/pids" ]; do :; done
    ;;
stay)
    setsid sh -c 'echo $$ >>"$HOME/pids"; exec sleep 902' &
    sh -c 'trap "" INT; echo $$ >>"$HOME/pids"; sleep 903'
    ;;
env) printf 'runtime [%s] ' "$EFR_RUNTIME_DIR" && printf 'state [%s] scratch [%s] hidden [%s]\n' "$STATE" "${SCRATCH##*/efr/}" "$EFR_HIDDEN_SHELL" ;;
esac
EOT
chmod 755 ~/bin/sudo
printf 'path=(~/bin $path)\nalias sudo="sudo alias"\n' >>"$HOME/.zshrc"
cd "$P"
project

# wait_pids N: N processes of the line have told their numbers.
waits="python3 $tests/e2e/until.py $limit '(\d+\s+){N}' cat $HOME/pids"
gone() {
    local pids
    mapfile -t pids <~/pids
    wait_gone "${pids[@]}"
    rm ~/pids
}

# What it left behind, in a session of its own and deaf to SIGTERM, is gone when the call has its result.
efr status >/dev/null
ask allow 'sudo leave'
contains "$(output)" 'exit code 0'
gone

# Of the sandbox's state nothing is there, nor an alias of the user's.
ask allow 'sudo env'
contains "$(output)" "runtime .$EFR_RUNTIME_DIR. state" 'the roots of this efr'
contains "$(output)" 'state \[\] scratch \[scratch/.*\] hidden \[1\]'

# An interrupt ends it, also a part that ignores SIGINT and one with a session of its own.
ask "stop:${waits/N/2}" 'sudo stay'
is 'o["end"]' turn_interrupted
gone

# So does the death of efrd.
ask "then:${waits/N/2}; kill -KILL $(daemon_pid)" 'sudo stay'
is 'o["end"]' 'the daemon is gone'
gone

# On a terminal: the card, y, the password.
terminal 100 40
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'
mark
type_line ', sudo ask'
see 'allow outside the sandbox'
see 'runs with your full rights: files, secrets, network'
see 'you may need to type your password'
see 'programs: sudo'
see 'only you can allow this'
see 'y allow'
mark
keys y
see 'it is not shown'
keys -l 'hunter22'
keys Enter
see 'length 8'
see 'done in'
lacks "$(plain <"$T/screen")" hunter22 'the screen'
stop_daemon
equals "$(grep -rla hunter22 "$HOME" || true)" '' 'files with the password'
