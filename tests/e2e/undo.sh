#!/usr/bin/env bash
# Also as root.
# Snapshots, diff and undo with real calls in the sandbox: what a turn changed is told, shown and taken back,
# in a project without git. Not covered: how trees are made (spec/store), plans (spec/undo).
. "$(dirname "$0")/lib.sh"
new_home
config auto
cd "$P"
printf 'one\ntwo\n' >a
printf 'gone\n' >b
project

# The text of the prompt is the line that the call runs.
model <<'EOL'
return function(request)
  local last = request.messages[#request.messages]
  if last.content[1].kind == "tool_result" then return { text = "done" } end
  local text = last.content[#last.content].text
  return { calls = { { name = "shell", input = { command = text } } } }
end
EOL

out=$(efr new 'printf "one\n2\n" >a; rm b; mkdir d; echo new >d/c; echo $SCRATCH >$SCRATCH/s' 2>&1)
contains "$out" 'changed .*/p/a \+1 −1' 'the call block'
contains "$out" "\(\+1 more\)" "the call block"
contains "$out" '4 files changed' 'the end of the turn'
contains "$out" 'efr undo reverts this turn' 'the end of the turn'
out=$(efr send "cat a" 2>&1)
lacks "$out" 'changed' 'a turn that changed nothing'

out=$(efr undo --list)
equals "$(wc -l <<<"$out")" 1 'the turns that can be undone'
turn=${out%% *}
out=$(efr diff --turn "$turn")
contains "$out" '^diff --git a/a b/a$' 'the diff'
contains "$out" '^\+2$' 'the diff'
contains "$out" '^deleted file mode 100644$' 'the diff'
out=$(efr diff --stat)
contains "$out" '^changed a \+1 −1$' 'the list'
contains "$out" '^4 files changed, \+3 −2' 'the list'

# Without a terminal nothing is asked, and nothing is done without --yes.
out=$(efr undo 2>&1) && fail "undo without --yes: $out"
contains "$out" '^restore     ~/p/a$' 'the preview'
contains "$out" '^trash       ~/p/d/c$' 'the preview'
contains "$out" 'give --yes' 'the refusal'
[[ -e $P/d/c ]] || fail 'a preview changed something'
out=$(efr undo --dry-run)
contains "$out" '^restore     ~/p/b$' 'a dry run'
echo mine >"$P/own"
out=$(efr undo --yes 2>&1)
contains "$out" '^undone: 2 files restored, 2 files moved to ' 'the result'
equals "$(cat "$P/a")" $'one\ntwo' 'a file that came back'
equals "$(cat "$P/b")" gone 'a file that came back'
[[ ! -e $P/d ]] || fail 'a directory that the turn made is still there'
equals "$(cat "$P/own")" mine 'a file of the user'
contains "$(efr undo --list)" 'undone' 'the list'
efr undo --redo --yes 2>/dev/null
equals "$(cat "$P/d/c")" new 'a file that a redo brought back'
conversation=$(efr history | sort | sed -n '1s/ .*//p')
contains "$(efr history "$conversation")" 'undone: 2 files restored, 2 files moved to the trash' 'the history'

# A command of the user's own, in a project and in a directory that --write names.
out=$(efr run -- sh -c 'echo run >r; rm a' 2>&1)
contains "$out" 'new r \+1|new .*/r \+1' 'what a run changed'
contains "$out" 'efr undo takes it back' 'what a run changed'
contains "$(efr diff --stat)" '^deleted a' 'the list of a run'
efr undo --yes 2>/dev/null
equals "$(cat "$P/a")" $'one\n2' 'a file that a run removed'
[[ ! -e $P/r ]] || fail 'a file that a run made is still there'
mkdir "$HOME/w"
cd "$HOME/w"
efr run --write . -- sh -c 'echo w >w' 2>/dev/null
efr undo --yes 2>/dev/null
[[ ! -e $HOME/w/w ]] || fail 'a file that a run made with --write is still there'
efr run --write . -- sh -c 'exit 3' && fail 'the exit code of a run is lost' || equals $? 3 'exit code'

# A commit in the sandbox, and the way back; nothing but a reference moves.
cd "$P"
git init -q -b main .
git add -A
git -c user.name=a -c user.email=a@b commit -qm one
main=$(git rev-parse main)
out=$(efr new 'git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two' 2>&1)
contains "$out" 'moved 1 ref in ~/p; efr undo reverts this turn' 'the end of the turn'
[[ $(git rev-parse main) != "$main" ]] || fail "no commit: $out"
out=$(efr undo --yes 2>&1)
contains "$out" '^ref         main [0-9a-f]{7} -> '"${main:0:7}$" 'the preview'
contains "$out" '^undone: 1 ref moved$' 'the result'
equals "$(git rev-parse main)" "$main" 'the branch'
efr undo --redo --yes 2>/dev/null
[[ $(git rev-parse main) != "$main" ]] || fail 'a redo moved no reference'

# A loss that undo can bring back asks nobody; one that it cannot does.
cd "$P"
echo 1 >small
truncate -s 11M big
efr config set conversation.approval_timeout_secs 1 >/dev/null
out=$(efr new 'truncate -s 0 small; echo ran' 2>&1) || true
[[ ! -s small ]] || fail "a loss that undo covers did not happen: $out"
efr undo --yes 2>/dev/null
equals "$(cat small)" 1 'a file that came back'
out=$(efr new 'truncate -s 0 big; echo ran' 2>&1 </dev/null) || true
[[ -s big ]] || fail "a loss that undo does not cover happened: $out"
contains "$out" 'truncate throws content away' 'the question'
efr config set sandbox.ask_destructive always >/dev/null
out=$(efr new 'truncate -s 0 small; echo ran' 2>&1 </dev/null) || true
[[ -s small ]] || fail "a file was emptied without a question: $out"
