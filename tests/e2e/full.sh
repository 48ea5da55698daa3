#!/usr/bin/env bash
# Full mode with the real daemon: the gate, root's refusal, a line outside of every root that runs with no question and
# is recorded with the judge full, a delete that the guard asks about, efr undo of both kinds of changes.
# Not covered: what the guard knows (spec/perm/full_spec.lua), settings that are held (spec/daemon).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config cautious
. "$(dirname "$0")/lib_exits.sh"
exits_model
cd "$P"
project
efr status >/dev/null

# full MODE LINE: exits.py with a prompt in full mode; the error of a refused prompt in $got.
full() { got=$(EFR_EXITS_MODE=full PYTHONPATH=$tests/e2e python3 "$tests/e2e/exits.py" "$run/daemon.sock" "$P" "$1" "$2" 2>&1) || :; }

say "the gate, and root"
full allow 'echo x'
contains "$got" 'permissions.allow_full is not true'
sed -i 's/^mode = .*/&\nallow_full = true/' "$HOME/.config/efr/config.toml"
efr config reload
if [[ $(id -u) == 0 ]]; then
    full allow 'echo x'
    contains "$got" 'full is not for root'
    say ok
    exit 0
fi

say "runs with no question, outside of the roots"
full deny "echo \${EFR_SANDBOX:-outside} >$HOME/made"
is 'e["turn_completed"]["kind"], "approval_requested" in e' "('turn_completed', False)"
equals "$(cat "$HOME/made")" outside
is 'e["exit_judged"]["judge"]' full

say "efr undo takes it back, in the project and outside of it"
echo old >"$P/kept"
mkdir "$HOME/notes"
echo old >"$HOME/notes/kept"
full deny "echo new >$P/kept; echo new >$HOME/notes/kept; echo 1 >$P/more"
is 'e["turn_completed"]["undo"]["available"], "approval_requested" in e' "(True, False)"
efr undo --yes >"$T/undone"
equals "$(cat "$P/kept") $(cat "$HOME/notes/kept")" "old old"
[[ ! -e $P/more ]] || fail "a new file stayed"

say "the guard asks before a project goes"
full deny "rm -rf $P"
is '"approval_requested" in e' True
[[ -d $P ]] || fail "the project is gone"

say "undo off is no full mode"
printf '[undo]\nenabled = false\n' >>"$HOME/.config/efr/config.toml"
efr config reload
full allow 'echo x'
contains "$got" 'full needs undo, which is off'
say ok
