# lib.sh: what every end to end test sources. Real efrd, efr, zsh, sandbox; only the model is scripted.
#
# Owns: the test's own directories (below $HOME, since a contained call has a /tmp of its own), its
# daemon, its tmux server, waiting for texts with a limit, the check for leftovers at the end.
# A test sets a HOME of its own: every process that efr starts carries it, so leftovers are found.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
# What is compared has characters beyond ASCII, whatever the caller's locale is.
export LC_ALL=C.UTF-8

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
EFR_BIN=${EFR_BIN:-$(dirname "$tests")/build/bin}
EFR_LUA=${EFR_LUA:-$(dirname "$tests")/build/test/efr-lua}
size=${EFR_TEST_SIZE:-ci}
limit=${EFR_TEST_LIMIT:-30}
tmux_name=efr-test-$$

say() { printf '%s\n' "$*"; }
fail() {
    printf 'FAIL %s\n' "$*" >&2
    if [[ -f ${log-} ]]; then
        printf -- '--- efrd.log\n' >&2
        tail -n 40 "$log" >&2
    fi
    exit 1
}

# Fresh directories. T: the test's directory; HOME below it; the project P is registered by `project`.
new_home() {
    local base=${EFR_TEST_BASE:-$HOME/.cache/efr-tests}
    mkdir -p "$base"
    T=$(mktemp -d "$base/XXXXXX")
    export HOME=$T/home
    local name
    for name in XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME "${!EFR_@}"; do
        [[ $name == EFR_BIN || $name == EFR_LUA ]] || unset "$name"
    done
    mkdir -p "$HOME/.config/efr" "$HOME/p"
    chmod 700 "$HOME" "$HOME/.config/efr"
    P=$HOME/p
    printf 'PS1="%%%%# "\n' >"$HOME/.zshrc"
    log=$HOME/.local/state/efr/logs/efrd.log
    run=$HOME/.local/state/efr/run
    db=$HOME/.local/share/efr/efr.sqlite
    # Last, unless there is another efr: the tree may lie where everybody writes (/tmp), and efr trusts
    # no program behind such a directory.
    if command -v efr >/dev/null; then PATH=$EFR_BIN:$PATH; else PATH=$PATH:$EFR_BIN; fi
    unset TMUX TMUX_PANE
}

# config [MODE]: config.toml with the scripted provider; the model is $T/model.lua. With
# EFR_SBX_BACKEND=bwrap bubblewrap builds the calls.
config() {
    cat >"$HOME/.config/efr/config.toml" <<EOF
[model]
provider = "scripted"
[scripted]
file = "$T/model.lua"
[permissions]
mode = "${1:-auto}"
EOF
    [[ ${EFR_SBX_BACKEND-} != bwrap ]] || sandbox_key 'backend = "bwrap"'
}

# sandbox_key LINE: a key of [sandbox] in config.toml, which must not have that table twice.
sandbox_key() {
    local file=$HOME/.config/efr/config.toml
    if ! grep -qx '\[sandbox\]' "$file"; then
        # In front: a test may add keys to the table that is last.
        printf '[sandbox]\n' | cat - "$file" >"$file.new"
        mv "$file.new" "$file"
    fi
    LINE=$1 awk '{ print } $0 == "[sandbox]" { print ENVIRON["LINE"] }' "$file" >"$file.new"
    mv "$file.new" "$file"
}

# model: the Lua file of the scripted model, from standard input.
model() { cat >"$T/model.lua"; }

project() { efr project add "${1:-$P}" >/dev/null; }

daemon_pid() { sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$run/daemon.json" 2>/dev/null || true; }

# wait_gone PID: until the process is gone, with a limit.
wait_gone() { python3 "$tests/e2e/gone.py" "$limit" "$@" || fail "process $* lives on"; }

stop_daemon() {
    local pid
    pid=$(daemon_pid)
    [[ -n $pid ]] || return 0
    kill -"${1:-TERM}" "$pid" 2>/dev/null || return 0
    wait_gone "$pid"
}

# Processes whose HOME is this test's, other than our own shell and its children that run the test.
leftovers() {
    local dir env
    for dir in /proc/[0-9]*; do
        [[ ${dir#/proc/} == "$$" || ${dir#/proc/} == "$BASHPID" ]] && continue
        { env=$(tr '\0' '\n' <"$dir/environ"); } 2>/dev/null || continue
        grep -qxF "HOME=$HOME" <<<"$env" || continue
        [[ $(cut -d' ' -f4 "$dir/stat" 2>/dev/null) == "$$" ]] && continue
        printf '%s %s\n' "${dir#/proc/}" "$(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null)"
    done
}

# wait_no_leftovers: every process of the test is gone, with a limit. A process may leave children, so
# it looks again until there is none.
wait_no_leftovers() {
    local rest pids
    while rest=$(leftovers) && [[ -n $rest ]]; do
        mapfile -t pids < <(cut -d' ' -f1 <<<"$rest")
        python3 "$tests/e2e/gone.py" "$limit" "${pids[@]}" || fail "left behind: $rest"
    done
}

# end_leftovers: kills what the test started and is still there; a process may leave children.
end_leftovers() {
    local rest pids round
    for round in 1 2 3 4 5; do
        rest=$(leftovers) && [[ -n $rest ]] || return 0
        mapfile -t pids < <(cut -d' ' -f1 <<<"$rest")
        kill -KILL "${pids[@]}" 2>/dev/null || true
        python3 "$tests/e2e/gone.py" "$limit" "${pids[@]}" || true
    done
    say "cannot end: $rest (after $round rounds)" >&2
}

finish() {
    local status=$?
    trap - EXIT
    tmux -L "$tmux_name" kill-server 2>/dev/null || true
    if [[ -n ${T-} && -d $T ]]; then
        local pid
        pid=$(daemon_pid)
        if [[ -n $pid ]] && kill -TERM "$pid" 2>/dev/null; then
            python3 "$tests/e2e/gone.py" "$limit" "$pid" || {
                kill -KILL "$pid"
                status=1
            }
        fi
        # In a subshell: `fail` must not skip what follows.
        if [[ $status == 0 ]]; then
            (wait_no_leftovers) || status=1
        fi
        [[ $status == 0 ]] || end_leftovers
        chmod -R u+rwX "$T" 2>/dev/null || true
        rm -rf "$T" || true
    fi
    exit $status
}
trap finish EXIT
# A command of the test that fails by itself ends it; say which.
trap 'printf "FAIL line %s: %s\n" "$LINENO" "$BASH_COMMAND" >&2' ERR

# contains TEXT PATTERN [WHAT]: PATTERN is an extended regular expression.
contains() { grep -qE -- "$2" <<<"$1" || fail "${3:-text} lacks /$2/: $1"; }
lacks() { ! grep -qE -- "$2" <<<"$1" || fail "${3:-text} has /$2/: $1"; }
equals() { [[ $1 == "$2" ]] || fail "${3:-value}: expected [$2], got [$1]"; }

# Terminal: a real zsh with the plugin in tmux; everything it prints is in $T/screen.
terminal() {
    cat >>"$HOME/.zshrc" <<EOF
PATH=$EFR_BIN:\$PATH
source $(dirname "$tests")/zsh/efr.plugin.zsh
EOF
    : >"$T/screen"
    tmux -L "$tmux_name" -f /dev/null new-session -d -x "${1:-100}" -y "${2:-40}" \
        "env -u TMUX HOME='$HOME' zsh -i"
    tmux -L "$tmux_name" pipe-pane -o "cat >>'$T/screen'"
    tmux -L "$tmux_name" send-keys "print ready-\$((40+2))" Enter
    see 'ready-42'
}
# keys KEY...: a single y or n waits until efr reads single keys.
keys() {
    if [[ $# == 1 && $1 == [yn] ]]; then
        python3 "$tests/e2e/single_keys.py" "$limit" "$(tmux -L "$tmux_name" display-message -p '#{pane_tty}')" ||
            fail 'no question reads keys'
    fi
    tmux -L "$tmux_name" send-keys "$@"
}
type_line() {
    tmux -L "$tmux_name" send-keys -l -- "$1"
    tmux -L "$tmux_name" send-keys Enter
}

# plain: the terminal's output without escape sequences.
plain() { sed -u -e 's/\x1b\[[0-9;?]*[a-zA-Z]//g' -e 's/\x1b[][()][^\x07]*\x07//g' -e 's/\x1b[=>]//g' -e 's/\r//g'; }

# see PATTERN [FROM]: waits until PATTERN was printed, from byte FROM of the output on.
seen=0
see() {
    local from=${2:-$seen}
    python3 "$tests/e2e/see.py" "$T/screen" "$from" "$limit" "$1" ||
        fail "the terminal never showed /$1/: $(tail -c +"$((from + 1))" "$T/screen" | plain | tail -n 40)"
}
# mark: later `see` looks only at what is printed from now on.
mark() { seen=$(stat -c %s "$T/screen"); }
screen() { tmux -L "$tmux_name" capture-pane -p; }
