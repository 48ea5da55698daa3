#!/usr/bin/env bash
# Exits end to end: a line in auto that leaves the sandbox is asked about. For each kind that this machine can
# show: allowed (it runs, with exactly its grant, once), denied, expired and interrupted (nothing runs), and what
# is recorded of it. The one-command rule, two answers at once, the daemon killed while a question waits.
# Not covered: what a grant leaves closed (exit_grants.sh), what changes between question and start
# (exit_changes.sh).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
mkdir -p "$HOME/notes"
. "$(dirname "$0")/lib_exits.sh"
exits_model
cd "$P"
project
efr status >/dev/null
# A write outside of the roots: refused by nobody's yes, and open for one call after a yes.
ask deny 'print one >~/notes/a'
is 'e["exit_requested"]["kinds"]' "['write']"
is 'e["exit_judged"]["judge"], e["exit_judged"]["verdict"]' "('user', 'deny')"
is 'e["tool_call_completed"]["refusal"]["kind"]' user
[[ ! -e ~/notes/a ]] || fail 'a denied call made the file'
ask allow 'print one >~/notes/a; print two >~/notes/b'
is 'e["exit_requested"]["record"]["user_messages"]' "['print one >~/notes/a; print two >~/notes/b']"
is '[g["path"][-8:] for g in e["tool_call_started"]["launch"]["grants"]]' "['/notes/a', '/notes/b']"
is 'e["tool_call_completed"]["sandbox"]["confined"]' True
equals "$(cat ~/notes/a ~/notes/b)" $'one\ntwo' 'the granted files'
ask deny 'print three >~/notes/a'
equals "$(cat ~/notes/a)" one 'the grant was for one call'
ask interrupt 'print four >~/notes/a'
is 'o["end"], "exit_judged" in e, "approval_expired" in e' "('turn_interrupted', False, True)"
is 'e["tool_call_completed"]["refusal"]["kind"]' interrupted
equals "$(cat ~/notes/a)" one 'an interrupted question'

# What the model asks for: the script hides its write.
printf 'print hidden >~/notes/hidden\n' >"$P/script.zsh"
mkdir -p ~/notes
ask deny $'zsh script.zsh\nneeds write=~/notes reason=the_script_needs_it'
is 'e["exit_requested"]["source"]' needs
is 'e["approval_requested"]["exit"]["model_reason"]' 'the script needs it'
ask allow $'zsh script.zsh\nneeds write=~/notes reason=the_script_needs_it'
equals "$(cat ~/notes/hidden)" hidden 'what the script wrote'

# Outside: alone, with everything, asked once; a line with more is refused without a question.
mkdir -p "$HOME/bin"
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"$HOME/ran"\n' >"$HOME/bin/sudo"
chmod 755 "$HOME/bin/sudo"
printf 'path=(~/bin $path)\n' >>"$HOME/.zshrc"
ask deny 'sudo true'
is 'e["approval_requested"]["exit"]["launch"]["kind"]' unsandboxed
is '[x["resolved"][-9:] for x in e["approval_requested"]["exit"]["programs"]][0]' /bin/sudo
[[ ! -e ~/ran ]] || fail 'a denied line ran outside'
ask allow 'sudo -k; sudo true'
is 'len([x for x in o["events"] if x["kind"] == "approval_requested"])' 1
is 'e["tool_call_started"]["launch"]["kind"]' unsandboxed
equals "$(cat ~/ran)" $'-k\ntrue' 'what ran outside'
rm ~/ran
if [[ $(id -u) == 0 && -x /usr/bin/sudo ]]; then
    mv ~/bin/sudo ~/bin/sudo.own
    ask allow 'sudo -k; sudo true'
    is 'len([x for x in o["events"] if x["kind"] == "approval_requested"])' 1
    contains "$(output)" 'exit code 0' 'the real sudo'
    mv ~/bin/sudo.own ~/bin/sudo
fi
ask allow 'sudo -v && ./helper'
is '"approval_requested" in e, e["tool_call_completed"]["refusal"]["kind"]' "(False, 'floor')"
contains "$(value 'e["tool_call_completed"]["refusal"]["reason"]')" 'must run alone'
[[ ! -e ~/ran ]] || fail 'a refused line ran'

# A floor has no question.
mkdir -p ~/.ssh
echo secret >~/.ssh/id
ask allow 'cat ~/.ssh/id'
is '"approval_requested" in e, e["exit_judged"]["judge"]' "(False, 'floor')"

# Two clients answer at the same moment: one answer counts, and what happened is what it said.
for _ in 1 2 3; do
    rm -f ~/notes/two
    ask two 'print two >~/notes/two'
    is 'sorted(o["two"].values())' "['not_found', 'taken']"
    is 'o["two"][e["approval_resolved"]["decision"]]' taken
    is '(e["approval_resolved"]["decision"] == "allow") == __import__("os").path.exists("'"$HOME"'/notes/two")' True
done

# Without an answer in time nothing runs.
printf '[conversation]\napproval_timeout_secs = 1\n' >>"$HOME/.config/efr/config.toml"
efr config reload >/dev/null
ask expire 'print late >~/notes/late'
is '"approval_expired" in e, "exit_judged" in e' '(True, False)'
is 'e["tool_call_completed"]["refusal"]["kind"]' expired
[[ ! -e ~/notes/late ]] || fail 'an expired call ran'
sed -i '/^\[conversation\]/,$d' "$HOME/.config/efr/config.toml"
efr config reload >/dev/null

# History shows each record, and the user's words only as a number.
all=$(efr history --verbose "$(efr history | awk 'NR == 1 { print $1 }')")
contains "$all" 'exit write ~/notes/late, predicted, decided by reviewer' 'history'
contains "$all" 'your messages in the record: 1' 'history'
lacks "$(efr history "$(efr history | awk 'NR == 1 { print $1 }')")" 'decided by' 'history without --verbose'

# The daemon dies while a question waits: the question expires, nothing runs, nothing goes on by itself.
ask wait 'print dead >~/notes/dead'
stop_daemon KILL
efr status >/dev/null
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_expired'")" 3 'expired questions'
[[ ! -e ~/notes/dead ]] || fail 'a call ran after its question died'

# Away: the question ends after presence.away_wait_secs, the turn goes on, and nothing is refused. Without a terminal too.
printf '[presence]\naway_wait_secs = 10\n' >>"$HOME/.config/efr/config.toml"
efr config reload >/dev/null
ask 'do-not:efr away' 'print gone >~/notes/gone'
is 'e["tool_call_completed"]["refusal"]["kind"], "exit_judged" in e, o["end"]' "('expired', False, 'turn_completed')"
contains "$(output)" 'nobody answered while you were away; the call did not run'
equals "$(efr away off)" 'not away' 'efr away off'

# What was refused last runs once, afterwards, when the user says so.
ask deny 'print later >~/notes/later'
id=$(efr history | awk 'NR == 1 { print $1 }')
contains "$(output)" 'efr allow-last'
if efr allow-last --conversation "$id" </dev/null >"$T/out" 2>&1; then fail 'it ran without a yes'; fi
contains "$(cat "$T/out")" 'print later >~/notes/later'
[[ ! -e ~/notes/later ]] || fail 'a shown call ran'
sed -i 's,^  local line\, needs = .*,  local again = text:match("arguments: (.*)$")\n  if again then return { calls = { { name = "shell"\, input = { command = again:match("\\"command\\":\\"(.*)\\"}") } } } } end\n&,' "$T/model.lua"
efr allow-last --yes --conversation "$id" </dev/null >/dev/null 2>&1
equals "$(cat ~/notes/later)" later 'what ran afterwards'
if efr allow-last --yes --conversation "$id" </dev/null >"$T/out" 2>&1; then fail 'it was allowed twice'; fi
contains "$(cat "$T/out")" 'allowed once already'
