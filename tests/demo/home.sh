# home.sh: throw-away directories with a daemon of their own, for ./dev demo and ./dev run.
#
# Owns: making and removing them. They lie below $HOME: a contained call has a /tmp of its own.
# shellcheck shell=bash
# make_home BUILD: the caller has set `root`; sets D, changes HOME to D/home and clears efr's variables.
make_home() {
    local bin=$1/bin name
    mkdir -p "$HOME/.cache/efr-demo"
    D=$(mktemp -d "$HOME/.cache/efr-demo/XXXXXX")
    for name in XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME ZDOTDIR "${!EFR_@}"; do
        unset "$name"
    done
    export HOME=$D/home PATH=$bin:$PATH
    mkdir -p "$HOME/.config/efr"
    trap remove_home EXIT
}

remove_home() {
    local pid
    trap - EXIT
    pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$HOME/.local/state/efr/run/daemon.json" 2>/dev/null)
    if [[ -n $pid ]] && kill -TERM "$pid" 2>/dev/null; then
        python3 "$root/tests/e2e/gone.py" 20 "$pid" || kill -KILL "$pid"
    fi
    rm -rf "$D"
}
