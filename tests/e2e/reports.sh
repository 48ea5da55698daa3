#!/usr/bin/env bash
# Also as root.
# Faults that users of other agents and sandboxes reported, each by its small input, row by row: 4 to 11 and 13 to 15.
# Elsewhere: 1 and 2 (no namespaces) and 3 (a dead mount) in sandbox.sh and dead_project.sh, 12 (children after an
# interrupt) in interrupt.sh, 16 and later with what they are about.
. "$(dirname "$0")/lib.sh"
new_home
config auto
sandbox_key 'mask = ["~/m"]'
mkdir -p "$HOME"/{.ssh,.aws,p_evil,m,m_evil,w/app,.config/fish}
printf 'TOP-SECRET\n' | tee "$HOME/.aws/credentials" "$HOME/m/key" >"$HOME/.ssh/id_test"
printf 'seen\n' >"$HOME/m_evil/key"
: >"$HOME/.config/fish/config.fish"
cd "$P"
git init -q -b main .
git config user.name a
git config user.email a@b
git commit -q --allow-empty -m one
project
home_names() { find "$HOME" -mindepth 1 -maxdepth 3 -not -path "$HOME/.local*" -not -path "$P/.git/*" | sort; }
# run LINE: what a call prints, its exit status last.
run() { efr run "${@:2}" -- bash -c "$1; echo rc \$?" 2>&1 </dev/null; }

# 4: a launcher that is killed leaves nothing where the command stood.
before=$(home_names)
mkfifo "$T/ready" "$T/go"
efr run -- sh -c 'echo here >pid; exec sleep 1000' >/dev/null 2>&1 &
client=$!
python3 "$tests/e2e/until.py" "$limit" here cat pid || fail 'the call never began'
launcher=$(ps -o pid=,args= --ppid "$client" | sed -n 's/^ *\([0-9]*\) .*efr-sbx run.*/\1/p')
[[ -n $launcher ]] || fail "no launcher below $client"
kill -KILL "$launcher"
wait "$client" || true
wait_gone "$launcher"
rm pid
equals "$(home_names)" "$before" 'row 4: what lies in the home directory and the project'

# 5: a hidden directory takes no writes.
contains "$(run 'echo x >~/.ssh/new')" 'Read-only file system' 'row 5'
contains "$(run 'echo x >~/m/new')" 'Read-only file system' 'row 5'

# 6: a writable place above a dotfile.
out=$(run 'echo evil >~/.config/fish/config.fish; echo x >~/.config/mine' --write "$HOME/.config")
contains "$out" 'fish/config.fish: Read-only file system' 'row 6'
equals "$(cat "$HOME/.config/fish/config.fish" "$HOME/.config/mine")" x 'row 6: what was written'
rm "$HOME/.config/mine"

# 7: hooks behind a link.
rm -rf .git/hooks
mkdir h
ln -s ../h .git/hooks
contains "$(run 'git commit -q --allow-empty -m two && git log --oneline | wc -l')" '^2$' 'row 7: a commit'
contains "$(run 'echo evil >h/pre-commit')" 'Read-only file system' 'row 7: a hook'
rm -rf h .git/hooks

# 8: whole components.
contains "$(run 'echo x >~/p_evil/file')" 'Read-only file system' 'row 8: a sibling of the project'
contains "$(run 'cat ~/m_evil/key ~/m/key')" '^seen$' 'row 8: a sibling of a hidden place'
lacks "$(run 'cat ~/m_evil/key ~/m/key')" 'TOP-SECRET' 'row 8: the hidden place'

# 10: a long line is judged whole.
line=$(printf ': ; %.0s' {1..60})
contains "$(run "$line echo x >~/out")" 'Read-only file system' 'row 10: contained'
contains "$(efr explain --mode cautious -- "$line echo x >~/.zshrc" 2>&1)" 'ask' 'row 10: judged'
lacks "$(efr explain --mode cautious -- "$line ls" 2>&1)" '^ *ask' 'row 10: a control'

# 11: bytes arrive as written.
equals "$(efr run -- printf '%s|' 'a!b' $'\x01' '!!' 'it'\''s' '\n')" $'a!b|\x01|!!|it\'s|\\n|' 'row 11'

# 13: pkill ends the call's own alone.
cp "$(command -v sleep)" next-server
./next-server 98765 >/dev/null 2>&1 &
mine=$!
contains "$(run './next-server 98765 & pkill -x next-server; wait $!; echo ended $?')" '^ended 143$' 'row 13: the own one'
kill "$mine" || fail 'row 13: pkill ended a process outside'
rm next-server

# 9, 14, 15: efr's own tools, and what is told at the end of a turn. The script is the command that nobody read.
ln -s "$HOME/.aws/credentials" link
printf 'ln -s ~/.zshrc out\necho "export X=1" >.envrc\necho made\n' >script
model <<'LUA'
local STEPS = {
  look = { { "read_file", { path = "link" } }, { "shell", { command = "sh ./script" } } },
  write = { { "write_file", { path = "out", content = "evil\n" } } },
}
return function(request)
  local word, said
  for _, message in ipairs(request.messages) do
    for _, block in ipairs(message.content) do
      if block.kind == "text" and STEPS[block.text] then word = block.text end
      said = block.output or said
    end
  end
  local step = STEPS[word or "look"][request.call + 1]
  if step then return { calls = { { name = step[1], input = step[2] } } } end
  return { text = "<" .. tostring(said) .. ">" }
end
LUA
out=$(timeout "$limit" efr new -- look 2>&1 </dev/null) || fail "rows 9 and 15: $out"
lacks "$out" 'TOP-SECRET' 'row 9'
contains "$out" 'refused: read .*/\.aws/credentials' 'row 9: the place that the link leads to'
contains "$out" '<made' 'rows 14 and 15: the call'
contains "$out" 'later:' 'row 15: the end of the turn'
contains "$out" '\.envrc' 'row 15: the file that a program runs later'
contains "$(run 'echo x >.envrc')" 'Read-only file system' 'row 15: a protected name that exists'
zshrc=$(cat "$HOME/.zshrc")
efr new -- write >"$T/out" 2>&1 </dev/null &
client=$!
python3 "$tests/e2e/until.py" "$limit" 'home/\.zshrc|~/\.zshrc' cat "$T/out" || fail "row 14: the file that is judged: $(cat "$T/out")"
kill "$client"
equals "$(cat "$HOME/.zshrc")" "$zshrc" 'row 14: the file behind the planted link'
lacks "$(cat "$T/out")" 'created|✓' 'row 14'
