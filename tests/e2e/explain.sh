#!/bin/bash
# efr explain: a line without a daemon (text, JSON, many lines at once, mode, directory, rules of the
# configuration), a past call through the daemon (by its id, and the newest of a terminal), and that both give the
# same reasons. A read-only line runs in cautious with no question, whatever the user's aliases say. Not covered:
# what each line means (spec/perm).
. "$(dirname "$0")/lib.sh"
new_home
config cautious
cat >>"$HOME/.config/efr/config.toml" <<'EOC'
[[permissions.rules]]
action = "execute"
resource = { command = { program = "make", args = ["test"] } }
effect = "allow"
EOC
cat >>"$HOME/.zshrc" <<'EOC'
alias cat='touch BAD; cat'
wc() { touch BAD; command wc "$@"; }
EOC
printf 'one\ntwo\n' >"$P/a.txt"
printf '[[projects]]\nid = "0199a0b0-0000-7000-8000-000000000001"\nroot = "%s"\n' "$P" \
    >"$HOME/.config/efr/projects.toml"
cd "$P"

field() { python3 -c 'import json,sys; d=json.loads(sys.stdin.readline()); print(eval(sys.argv[1]))' "$1"; }
expect() { [[ $2 == "$3" ]] || fail "$1: expected [$3], got [$2]"; }

# A line, with no daemon.
expect decision "$(efr explain --json 'cat a.txt | wc -l' | field 'd["decision"]')" allow
expect "an ask" "$(efr explain --json -- rm -rf a.txt | field 'd["decision"]')" ask
expect "a rule" "$(efr explain --json make test | field 'd["requirements"][-1]["cite"]')" 'permissions.rules[0]'
expect "an exit" "$(efr explain --mode auto --json 'git push' |
    field '[(e["kind"], e["approver"], e["launch"]) for e in d["exits"]]')" "[('upload', 'user', 'unsandboxed')]"
expect "a directory" "$(efr explain --json --cwd /tmp 'touch x' | field 'd["requirements"][0]["subject"]')" \
    "write /tmp/x"
# A setting of [sandbox] changes an exit: LINE, the setting, the exits without and with it.
file=$HOME/.config/efr/config.toml
kinds() { efr explain --mode auto --json "$1" | field '" ".join(e["kind"] for e in d["exits"])'; }
setting() {
    expect "$1" "$(kinds "$1")" "$3"
    cp "$file" "$T/plain.toml"
    sandbox_key "$2"
    expect "$1 with $2" "$(kinds "$1")" "$4"
    cp "$T/plain.toml" "$file"
}
setting 'touch ~/Dropbox/x' 'synced_dirs = []' synced_write write
setting 'touch ~/mine/x' 'caches = ["~/mine"]' write ''
setting 'touch x' "protect = [\"$P/x\"]" '' persistence
git -C "$P" init -q
mkdir "$P/target"
expect "nothing tracked" "$(kinds 'rm -r target')" ''
touch "$P/target/f"
git -C "$P" add -f target/f
setting 'rm -r target' 'rebuildable = []' '' destructive
mkdir "$HOME/q"
cp "$HOME/.config/efr/projects.toml" "$T/projects.toml"
printf '[[projects]]\nid = "0199a0b0-0000-7000-8000-000000000002"\nroot = "%s"\n' "$HOME/q" \
    >>"$HOME/.config/efr/projects.toml"
setting 'touch ~/q/x' 'write_projects = "turn"' '' write
cp "$T/projects.toml" "$HOME/.config/efr/projects.toml"
# What git would run decides about its reading lines.
git_status() { efr explain --json 'git status; git log -1' | field 'd["decision"], d["reasons"][-1]'; }
export -f git_status field
# git has 200 ms to answer, so on a busy machine it is asked again.
decides() { python3 "$tests/e2e/until.py" "$limit" "$1" bash -c git_status || fail "$2"; }
decides "'allow'" 'a clean repository'
git -C "$P" config core.fsmonitor ./x
decides "'ask', 'run.*git would run code: core.fsmonitor of .git/config" 'a repository that runs code'
rm -rf "$P/.git" "$P/target"
contains "$(efr explain 'cat ~/.ssh/id')" 'deny, by rule 7 of the machine policy' 'the text'
efr explain --mode nonsense ls 2>/dev/null && fail "an unknown mode was taken"
printf '%s\n' '"ls"' '"cat $(rm x)\n"' '7' >lines
efr explain --batch --mode auto <lines >out && fail "a row that is no string was taken"
expect "rows" "$(python3 -c 'import json; print([json.loads(r).get("decision") for r in open("out")])')" \
    "['contain', 'contain', None]"
[[ -e $run/daemon.sock ]] && fail "explain started a daemon"

# The same line as a call of the model: no question, and the same reasons.
model <<'EOC'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if request.call == 0 then
    return { calls = { { name = "shell", input = { command = "cat a.txt | wc -l" } } } }
  end
  return { text = block.output }
end
EOC
out=$(efr send -- go 2>"$T/err") || fail "$(cat "$T/err")"
contains "$out" '^2' 'what the model saw'
[[ ! -e $P/BAD ]] || fail "an alias or function of the user ran in the place of a trusted program"
call=$(
    python3 - "$db" <<'EOC'
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT payload FROM events")
print([e["call_id"] for (p,) in rows for e in [json.loads(p)] if e["kind"] == "tool_call_started"][-1])
EOC
)
expect "the past call" "$(efr explain --json "$call" | field 'd["effect"]')" allow
expect "the same reasons" "$(efr explain --json "$call" | field 'd["reasons"]')" \
    "$(efr explain --json 'cat a.txt | wc -l' | field 'd["reasons"]')"
efr explain 0199a0b0-0000-7000-8000-0000000000ff 2>"$T/err" && fail "an unknown call was explained"
contains "$(cat "$T/err")" 'does not know this call' 'the failure'

# The newest call of a terminal, with no word more.
terminal
type_line "cd $P"
type_line 'efr explain'
see 'this terminal has no conversation'
type_line ', go'
see 'done in'
mark
type_line 'efr explain; print rc-$?'
see 'rc-0'
contains "$(tail -c +"$((seen + 1))" "$T/screen" | plain)" 'cat a.txt \| wc -l' "the terminal's newest call"
