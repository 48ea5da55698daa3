#!/usr/bin/env bash
# Always rules end to end, in a real terminal: `a` shows the rule, only `y` after that saves it at the end of
# config.toml with every comment kept; the next call runs with no question; `efr sandbox allow` lists, names what
# is disabled and removes after a y. Several writers of the file at once lose nothing. Who may save, and what becomes
# of an answer whose rule cannot be saved. Not covered: what a rule covers (spec/perm/always_spec.lua).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
mkdir -p "$HOME/notes" "$HOME/docs"
echo old >"$HOME/notes/old"
. "$(dirname "$0")/lib_exits.sh"
exits_model
project
toml=$HOME/.config/efr/config.toml
printf '# my own words\n\n[conversation] # a note\nmax_queued = 5 # five\n' >>"$toml"
before=$(cat "$toml")
terminal
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'

# n at the second row goes back to the card, and nothing is saved; then a and y.
mark
type_line ', cp /etc/hostname ~/notes/one'
see 'a always: write under ~/notes'
keys a
see 'save rule "write under ~/notes"\? y/n'
mark
keys n
see 'a always: write under ~/notes'
[[ ! -e ~/notes/one ]] || fail 'a call ran without an answer'
equals "$(cat "$toml")" "$before" 'the file after no answer'
mark
keys a
see 'save rule "write under ~/notes"\? y/n'
keys y
see 'saved as sandbox.allow\[0\]: write under ~/notes'
see 'done in'
[[ -e ~/notes/one ]] || fail 'the call did not run'
equals "$(cat "$toml")" "$before"$'\n\n[[sandbox.allow]]\nkind = "write"\nunder = "~/notes"' 'the file with the rule'

# Covered now: no question, and the view names the rule.
mark
type_line ', cp /etc/hostname ~/notes/two'
see 'allowed by your rule sandbox.allow\[0\]: write under ~/notes'
see 'done in'
[[ -e ~/notes/two ]] || fail 'a covered call did not run'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_requested'")" 1 'questions'
contains "$(efr history --verbose "$(efr history | awk 'NR == 1 { print $1 }')")" \
    'allowed by your rule sandbox.allow\[0\]: write under ~/notes' 'the record'

# efr explain says so without a daemon.
out=$(cd "$P" && efr explain --mode auto -- 'cp /etc/hostname ~/notes/three')
contains "$out" 'your rule in sandbox.allow lets it \(sandbox.allow\[0\]: write under ~/notes\)' 'explain'
lacks "$(cd "$P" && efr explain --mode auto -- 'cp /etc/hostname ~/docs/three')" 'sandbox.allow' 'explain'

# Not covered: what the call makes next to it, a link out of it; a link in the rule's own place disables it.
cd "$P"
ask deny 'print x >~/docs/new'
is '"always_rule" in e["approval_requested"]["exit"]' False
ln -s ../docs ~/notes/away
ask deny 'cp /etc/hostname ~/notes/away/x'
is 'e["exit_judged"]["judge"]' user
rm ~/notes/away
ask deny 'cp /etc/hostname ~/notes/x; cp /etc/hostname ~/docs/x'
is 'e["approval_requested"]["exit"]["always_rule"]' 'write under ~/docs'
equals "$(echo ~/docs/* ~/notes/*)" "$HOME/docs/* $HOME/notes/old $HOME/notes/one $HOME/notes/two" 'what was written'

# Only a local terminal saves; the question stays open. A rule that fails its check at the answer: it runs once.
ask always-phone 'cp /etc/hostname ~/docs/phone'
contains "$(value 'o["first"]')" 'forbidden'
is 'e["exit_judged"]["verdict"]' deny
ask "always:mkdir -p ~/docs/p && cd ~/docs/p && efr project add . >/dev/null" 'cp /etc/hostname ~/docs/late'
contains "$(value 'o["reply"]["rule_error"]')" 'the project'
is 'e["exit_judged"]["judge"], e["exit_judged"]["verdict"]' "('user', 'allow')"
[[ -e ~/docs/late ]] || fail 'the call whose rule was not saved did not run'
equals "$(grep -c 'sandbox.allow' "$toml")" 1 'rules in the file'
efr project remove "$HOME/docs/p" >/dev/null
chmod 400 "$toml"
ask always 'cp /etc/hostname ~/docs/readonly'
contains "$(value 'o["reply"]["rule_error"]')" 'read-only'
chmod 600 "$toml"

# Twice the same rule is one; the second has the next number.
ask always 'cp /etc/hostname ~/docs/two'
is 'o["reply"]["rule_saved"]' "{'index': 1, 'words': 'write under ~/docs'}"
efr config reload >/dev/null
equals "$(efr sandbox allow)" $'sandbox.allow[0]: write under ~/notes\nsandbox.allow[1]: write under ~/docs' 'allow'

# A project inside disables a rule with no edit, and a link does; it is told.
(cd ~/docs/p && efr project add . >/dev/null)
contains "$(efr sandbox allow)" "disabled: the project $HOME/docs/p lies there"
contains "$(efr sandbox check)" "sandbox.allow\[1\] is disabled: the project $HOME/docs/p lies there"
ask deny 'cp /etc/hostname ~/docs/three'
is 'e["exit_judged"]["judge"]' user
contains "$(cat "$log")" 'sandbox.allow\[1\]: write under ~/docs is disabled'
efr project remove "$HOME/docs/p" >/dev/null
mv ~/notes ~/notes2 && ln -s notes2 ~/notes
contains "$(efr sandbox allow)" "disabled: a link leads $HOME/notes to $HOME/notes2"
rm ~/notes && mv ~/notes2 ~/notes

# A rule without sense stops the reload and is named with its line.
cp "$toml" "$T/kept.toml"
printf '\n[[sandbox.allow]]\nkind = "bus"\n' >>"$toml"
if err=$(efr config reload 2>&1); then fail 'a malformed rule was taken'; fi
contains "$err" 'sandbox.allow\[2\] has a kind that is none of write, host, socket'
contains "$err" "line $(grep -n bus "$toml" | cut -d: -f1)"
cp "$T/kept.toml" "$toml"
efr config reload >/dev/null

# remove asks, and takes out only what it showed.
mark
type_line 'efr sandbox allow remove 1'
see 'remove sandbox.allow\[1\]: write under ~/docs\? y/n'
type_line n
see 'kept'
mark
type_line 'efr sandbox allow remove 1'
see 'remove sandbox.allow\[1\]: write under ~/docs\? y/n'
sed -i 's,"~/docs","~/other",' "$toml"
type_line y
see 'is another rule now; nothing was changed'
mark
type_line 'efr sandbox allow remove 1'
see 'remove sandbox.allow\[1\]: write under ~/other\? y/n'
type_line y
see 'removed sandbox.allow\[1\]'
equals "$(cat "$toml")" "$before"$'\n\n[[sandbox.allow]]\nkind = "write"\nunder = "~/notes"' 'the file after the removal'
if efr sandbox allow remove 0 </dev/null 2>"$T/err"; then fail 'removed without a question'; fi

# Writers at once: the saving of a rule and three changes; each is there afterwards.
for n in 1 2 3 4; do
    efr config set conversation.max_queued $((n + 5)) >/dev/null &
    one=$!
    efr config set model.max_output_tokens $((n + 5000)) >/dev/null &
    two=$!
    efr config set snapshot.keep_turns $((n + 10)) >/dev/null &
    three=$!
    ask always "cp /etc/hostname ~/docs/$n"
    wait $one $two $three || fail 'a writer failed'
    is 'o["reply"]["rule_saved"]["index"]' 1
    for want in "max_queued = $((n + 5)) # five" "max_output_tokens = $((n + 5000))" "keep_turns = $((n + 10))" '# my own words' '"~/docs"'; do
        contains "$(cat "$toml")" "$want"
    done
    efr config unset sandbox.allow >/dev/null
    printf '\n[[sandbox.allow]]\nkind = "write"\nunder = "~/notes"\n' >>"$toml"
    efr config reload >/dev/null
done
