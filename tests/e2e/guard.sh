#!/usr/bin/env bash
# Also as root.
# The surface guard with real calls in the sandbox and real git: what a command plants is gone before the next
# call and before git can run it; in a pipe it stays in quarantine, on a terminal y puts it back as it was and n
# leaves it; an interrupt leaves it; the end of a turn names files that run code later; efr history shows all;
# efr run does the same. Not covered: each rule (spec/sbx/guard_spec.lua), races (tests/e2e/guard_race.sh).
. "$(dirname "$0")/lib.sh"
new_home
config auto
cd "$P"
git init -q -b main .
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
rm -rf .git/hooks
printf '{"scripts": {"test": "true"}}\n' >package.json
printf 'all:\n' >Makefile
project

cat >"$HOME/plant.zsh" <<'EOT'
echo /tmp >.git/commondir; printf '[core]\n\tfsmonitor = touch ~/ran\n' >.git/config.worktree
git init -q sub; printf '#!/bin/sh\ntouch ran\n' >sub/.git/hooks/pre-commit; chmod 751 sub/.git/hooks/pre-commit
mkdir .git/hooks; echo evil >.git/hooks/post-index-change
printf '{"scripts": {"test": "false"}}' >package.json; : >build.rs; mkdir -p deep/.cargo
printf '[build]\nrustc-wrapper = "x"\n' >deep/.cargo/config.toml; touch Makefile; echo planted
EOT

# The first word of the prompt chooses what the calls do.
model <<'EOF'
local function result(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  return block.kind == "tool_result" and block or { output = "" }
end
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
-- What a line plants itself is a question; what a script does, only the guard sees.
local PLANT = "source ~/plant.zsh"
local LOOK = "cat .git/commondir .git/config.worktree sub/.git/hooks/pre-commit; ls .git/hooks; git status --short | sort"
return function(request)
  local r = result(request)
  local text
  for _, message in ipairs(request.messages) do
    for _, block in ipairs(message.content) do
      if message.role == "user" and block.kind == "text" and not block.text:find("<live_state>", 1, true) then text = block.text end
    end
  end
  if text == "plant" then
    if request.call == 0 then return shell(PLANT) end
    if request.call == 1 then
      for _, name in ipairs { ".git/commondir", ".git/config.worktree", ".git/hooks/post-index-change", "sub/.git/hooks/pre-commit" } do
        if not r.output:find(name, 1, true) then return { text = "WRONG 1, no " .. name .. ": " .. r.output } end
      end
      if not r.output:find("planted", 1, true) or not r.output:find("moved to quarantine", 1, true) then return { text = "WRONG 1: " .. r.output } end
      return shell(LOOK)
    end
    if select(2, r.output:gsub("No such file", "")) ~= 3 or r.output:find("fatal", 1, true)
      or not r.output:find("%?%? sub/") then return { text = "WRONG 2: " .. r.output } end
    return { text = "gone before the next call" }
  elseif text == "last" then
    if request.call == 0 then return shell("echo /tmp >.git/commondir") end
    return { text = "the model is done" }
  elseif text == "late" then
    if request.call == 0 then
      return { calls = { { name = "shell", input = { command = "cat ~/p/gate; echo /tmp >.git/commondir", timeout_seconds = 1 } } } }
    end
    return { text = r.output:find("still runs", 1, true) and "it goes on" or "WRONG late: " .. r.output }
  elseif text == "fine" then
    if request.call == 0 then return shell("git checkout -q -b b && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two; echo x >f; git stash -q -u; git stash list | wc -l") end
    return { text = r.output:find("1\n", 1, true) and not r.output:find("quarantine", 1, true) and "fine" or "WRONG fine: " .. r.output }
  end
  return { text = "WRONG prompt: " .. tostring(text) }
end
EOF
hook_stat() { stat -c '%a %s %Y %i' "$P/sub/.git/hooks/pre-commit"; }
places() { find "$HOME/.local/state/efr/sandbox" -path '*/quarantine/*' -name entries.json; }

# ---- in a pipe ----
out=$(timeout 60 efr new -- plant 2>"$T/err") || fail "$(cat "$T/err")"
equals "$out" 'gone before the next call' 'what the model saw'
err=$(cat "$T/err")
contains "$err" 'moved to quarantine: ~/p/.git/commondir \(commondir in main git dir\)'
contains "$err" 'moved to quarantine: ~/p/.git/config.worktree'
contains "$err" 'moved to quarantine: ~/p/.git/hooks/post-index-change \(hook planted\)'
contains "$err" 'moved to quarantine: ~/p/sub/.git/hooks/pre-commit \(hook planted\)'
contains "$err" '\? keep the git settings that the last command changed'
contains "$err" '✗ left in quarantine'
contains "$err" 'it lies in ~/.local/state/efr/sandbox/.*/quarantine/'
contains "$err" 'this turn changed files that run code later:'
contains "$err" '^  build.rs, deep/.cargo/config.toml \(build.rustc-wrapper\), package.json \(scripts\)$'
[[ ! -e $P/.git/commondir && ! -e $P/.git/config.worktree && ! -e $P/sub/.git/hooks/pre-commit ]] || fail 'a planted file is there'
git -C "$P" status >/dev/null || fail 'git does not work in the project'
git -C "$P/sub" -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
[[ ! -e $HOME/ran && ! -e $P/sub/ran ]] || fail 'planted code ran'
equals "$(places | wc -l)" 1 'quarantine directories'
place=$(dirname "$(places)")
equals "$(stat -c %a "$place")" 700 'mode of the quarantine'
python3 - "$place" "$P" <<'EOF' || fail 'entries.json is wrong'
import json, os, sys
place, project = sys.argv[1:]
entries = json.load(open(place + "/entries.json"))
assert sorted(e["from"] for e in entries) == sorted(project + "/" + n for n in (
    ".git/commondir", ".git/config.worktree", ".git/hooks/post-index-change", "sub/.git/hooks/pre-commit")), entries
assert sorted([e["to"] for e in entries] + ["entries.json"]) == sorted(os.listdir(place))
assert os.stat(place + "/" + [e["to"] for e in entries if "pre-commit" in e["from"]][0]).st_mode & 0o777 == 0o751
EOF
id=$(efr history | sed -n '1s, .*,,p')
past=$(efr history "$id")
contains "$past" 'moved to quarantine: ~/p/.git/commondir'
contains "$past" 'keep the git settings that the last command changed: ~/p/.git/commondir \(commondir in main git dir\); moved'
contains "$past" 'left in quarantine'
contains "$past" 'package.json \(scripts\)'
rm -rf "$place" "$P/sub" "$P/build.rs" "$P/deep"

# ---- ordinary git says nothing ----
equals "$(efr new -- fine 2>"$T/err")" fine 'ordinary work'
lacks "$(cat "$T/err")" 'quarantine|later'

# ---- a command that goes on after its call, and its turn ----
mkfifo gate
equals "$(efr new -- late 2>"$T/err")" 'it goes on' 'a call that ran into its timeout'
equals "$(places | wc -l)" 0 'quarantine directories while it runs'
echo >gate
python3 "$tests/e2e/until.py" "$limit" entries.json find "$HOME/.local/state/efr/sandbox" -path '*/quarantine/*' ||
    fail 'what a command planted after its call is not in quarantine'
id=$(efr history | sed -n '1s, .*,,p')
python3 "$tests/e2e/until.py" "$limit" 'moved to quarantine: ~/p/.git/commondir' efr history "$id" ||
    fail 'the history does not show what was planted after the end of a turn'
[[ ! -e .git/commondir ]] || fail 'a planted file is there'
rm -rf gate "$(dirname "$(places)")"

# ---- what stood there comes back, also where a command took it away; the command that puts back works ----
git worktree add -q "$HOME/tree"
efr run -- sh -c 'cd .git/worktrees/tree && rm commondir && mkdir objects refs && printf "[core]\n\tfsmonitor = touch %s/ran\n" "$HOME" >config' \
    2>"$T/err" </dev/null || fail "$(cat "$T/err")"
contains "$(cat "$T/err")" 'put back, because the command removed it: ~/p/.git/worktrees/tree/commondir'
git -C "$HOME/tree" status >/dev/null || fail 'git does not work in the work tree'
[[ ! -e $HOME/ran ]] || fail 'planted code ran in a work tree'
efr run -- sh -c 'echo /etc >.git/worktrees/tree/gitdir' 2>"$T/err" </dev/null || fail "$(cat "$T/err")"
contains "$(cat "$T/err")" 'moved to quarantine: ~/p/.git/worktrees/tree/gitdir .*; what stood there before is back'
equals "$(cat .git/worktrees/tree/gitdir)" "$HOME/tree/.git" 'the file of a work tree'
sh -c "$(grep -E '^  mv -fT -- ' "$T/err")"
equals "$(cat .git/worktrees/tree/gitdir)" /etc 'what the printed command puts back in place of the old one'
echo "$HOME/tree/.git" >.git/worktrees/tree/gitdir
rm -rf "$(dirname "$(places)")" .git/worktrees/tree/{objects,refs,config}
git worktree remove --force "$HOME/tree"

# ---- efr run ----
plant="echo /tmp >.git/commondir; echo all: >Makefile; exit 7"
rc=0
efr run -- sh -c "$plant" 2>"$T/err" </dev/null || rc=$?
equals $rc 7 'exit status of a run that planted something'
err=$(cat "$T/err")
contains "$err" 'moved to quarantine: ~/p/.git/commondir \(commondir in main git dir\)'
contains "$err" '✗ left in quarantine'
contains "$err" "^to put it back:$"
contains "$err" '^  Makefile$|^  ~/p/Makefile$'
[[ ! -e .git/commondir ]] || fail 'a run planted a file'
sh -c "$(grep -E '^  mv -n -- ' "$T/err")"
equals "$(cat .git/commondir)" /tmp 'what the printed command puts back'
rm .git/commondir
rm -rf "$(dirname "$(places)")"
efr run -- git status >/dev/null 2>"$T/err"
equals "$(cat "$T/err")" '' 'what an ordinary run says'

# ---- on a terminal: y puts back exactly, n leaves ----
terminal 140
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'
mark
type_line ', plant'
see 'n leave in quarantine'
[[ ! -e $P/.git/commondir ]] || fail 'the file is there while the user is asked'
place=$(dirname "$(places)")
before=$(stat -c '%a %s %Y %i' "$place"/*-pre-commit)
keys y
# What is kept makes the next call see it, and git fail on it: the model says so.
see 'done in'
contains "$(plain <"$T/screen")" '✓ kept'
contains "$(plain <"$T/screen")" 'WRONG 2'
equals "$(cat "$P/.git/commondir")" /tmp 'the file that was kept'
equals "$(hook_stat)" "$before" 'mode, size, time and inode of the hook'
equals "$(places | wc -l)" 0 'quarantine directories after y'
contains "$(plain <"$T/screen")" 'later:'
contains "$(plain <"$T/screen")" '\.git/commondir, '
rm -rf "$P/.git/commondir" "$P/.git/config.worktree" "$P/.git/hooks" "$P/sub" "$P/build.rs"

# efr run asks too.
mark
type_line 'efr run -- sh -c "echo /tmp >.git/commondir"'
see 'y keep'
[[ ! -e $P/.git/commondir ]] || fail 'the file is there while the user of efr run is asked'
keys y
see 'kept'
equals "$(cat "$P/.git/commondir")" /tmp 'the file that a run may keep'
rm "$P/.git/commondir"

# The last call of a turn is asked about at its end.
mark
type_line ', last'
see 'y keep'
contains "$(plain <"$T/screen")" 'the model is done'
keys n
see 'done in'
[[ ! -e $P/.git/commondir ]] || fail 'n did not leave it in quarantine'
equals "$(places | wc -l)" 1 'quarantine directories after n'

# An interrupt leaves it there too.
mark
type_line ', last'
see 'y keep'
keys C-c
see 'left in quarantine'
[[ ! -e $P/.git/commondir ]] || fail 'the interrupt did not leave it in quarantine'
equals "$(places | wc -l)" 2 'quarantine directories after the interrupt'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'surface_question_requested'")" 4 'questions'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'surface_question_answered'")" 4 'answers'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'surface_question_answered' AND json_extract(payload, '\$.keep') = 1")" 1 'kept'
