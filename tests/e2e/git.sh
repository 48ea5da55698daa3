#!/usr/bin/env bash
# git in contained calls, with the real daemon: what a developer does works in a repository, a linked work
# tree and a submodule, git's settings and hooks cannot be written there, and `git status` outside
# shows only the user's files. In cautious, git's reading lines run without a question where git says
# that nothing would run. Not covered: which paths are pinned in which layout (spec/sbx/git_pins_spec.lua),
# files that do not exist before the call (the guard).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
git config --global user.email you@example.org
git config --global user.name you
git config --global protocol.file.allow always
git config --global init.defaultBranch main
cd "$P"
git init -q
mkdir src hooks-of-ours
echo 1 >src/a
git add .
git commit -qm one
project

inside() { efr run -- bash -ec "$1" 2>"$T/err" || fail "$1: $(cat "$T/err")"; }
# What git's settings and hooks are, outside.
settings() {
    find "$HOME/p" "$HOME/linked" "$HOME/super" \( -name config -o -path '*/hooks*/*' -o -path '*/named/*' \
        -o -path '*/more/*' -o -name .git \) -exec sh -c 'stat -c "%A %n" "$1"; test -d "$1" || cksum "$1"' x {} \; \
        2>/dev/null | sort || true
}
# refused WHAT LINE: the line fails inside, without a trace outside, and works outside.
refused() {
    local before after
    before=$(settings)
    if efr run -- bash -c "$2" >"$T/out" 2>&1; then fail "inside: $1: $(cat "$T/out")"; fi
    grep -qE 'Read-only file system|Device or resource busy|could not (write|lock)|Permission denied' "$T/out" ||
        fail "inside: $1: another error: $(cat "$T/out")"
    after=$(settings)
    equals "$after" "$before" "$1: what is left"
}
clean() { equals "$(git status --porcelain)" '' "git status in $PWD"; }

# What a developer does.
inside 'echo 2 >>src/a; git add -A; git commit -qm two; git commit -q --allow-empty -m three'
inside 'git checkout -qb side HEAD~1; echo s >src/s; git add -A; git commit -qm side; git checkout -q main'
inside 'echo w >>src/a; git stash -q; git stash pop -q; git commit -qam four; git rebase -q side; git merge -q --no-edit side'
inside 'git tag -a v1 -m v1; git branch -d side; git mv src/s src/t; git rm -qf src/t; git reset -q --hard'
inside 'git clone -q . /tmp/copy; cd /tmp/copy; git fetch -q; git log -1 --format=%s | grep -qx four; git gc -q'
inside 'test -z "$(git status --porcelain)"'
clean
equals "$(git log -1 --format=%s)" four 'the newest commit'

# Settings and hooks.
refused 'git config' 'git config core.pager x'
refused 'a write of the config' 'echo >>.git/config'
refused 'a new config' 'echo >x; mv x .git/config'
refused 'removing the config' 'rm -f .git/config'
refused 'a hook' 'echo >.git/hooks/pre-commit'
refused 'a changed hook' 'echo >>.git/hooks/pre-commit.sample'
refused 'renaming the hooks' 'mv .git/hooks .git/h'
refused 'renaming .git' 'mv .git g'
refused 'removing .git' 'rm -rf .git/hooks'
refused 'exchanging .git' 'mkdir g; mv -T --exchange g .git 2>&1 || mv -T g .git'
rmdir g 2>/dev/null || true
rm -f x
clean

# A hooks directory that is a link, one that the settings name, and a file that they include.
rm -r .git/hooks
ln -s ../hooks-of-ours .git/hooks
echo '#!/bin/sh' >hooks-of-ours/pre-commit
mkdir named more
echo >named/x
echo >more/settings
git add -A
git commit -qm hooks
inside 'git commit -q --allow-empty -m linked'
refused 'a hook behind a link' 'echo x >>hooks-of-ours/pre-commit'
refused 'a new hook behind a link' 'echo x >hooks-of-ours/post-commit'
git config core.hooksPath named
git config include.path ../more/settings
refused 'a hook of the named directory' 'echo x >named/pre-commit'
refused 'included settings' 'echo x >more/settings'
inside 'git commit -q --allow-empty -m named; echo x >more/other'
rm more/other
git config --unset core.hooksPath
git config --unset include.path
rm .git/hooks
git init -q
clean

# A linked work tree beside the project: its git directory is inside the project's.
git worktree add -q ../linked
cd ../linked
contains "$(efr project add .)" "its git directory is $P/.git" 'project add'
inside 'echo 3 >>src/a; git add -A; git commit -qm linked; git stash list; git rebase -q main; git commit -q --amend -m again'
clean
equals "$(git log -1 --format=%s)" again 'the commit in the work tree'
refused 'the config of a work tree' 'git config core.pager x'
refused 'a hook of a work tree' 'echo >"$(git rev-parse --git-common-dir)/hooks/pre-commit"'
refused 'the .git file' 'echo x >.git'
refused 'renaming the .git file' 'mv .git g'
refused 'the files of the other work tree' "echo x >>'$P/src/a'"
# What the file says no longer matches: nothing of git is writable, and a note says what to do.
kept=$(cat .git)
git -C "$P" worktree add -q "$HOME/other" -b other
echo "gitdir: $P/.git/worktrees/other" >.git
if efr run -- git commit -q --allow-empty -m x 2>"$T/err"; then fail "a commit through a changed .git file"; fi
contains "$(cat "$T/err")" 'is not recorded so; run .efr project add' 'the note'
# A file that leads to a repository which does not know this work tree is not taken.
efr project add . >"$T/out" 2>&1 || true
contains "$(cat "$T/out")" 'does not know this work tree' 'a foreign .git file'
if efr run -- git commit -q --allow-empty -m x 2>"$T/err"; then fail "a commit through a foreign .git file"; fi
echo "$kept" >.git
contains "$(efr project add .)" "its git directory is $P/.git" 'project add again'
inside 'git commit -q --allow-empty -m back'

# Submodules, from above and registered by themselves.
git init -q "$HOME/super"
cd "$HOME/super"
git submodule --quiet add "$P" libs/sub
git commit -qm sub
project "$HOME/super"
inside 'cd libs/sub; git checkout -q -B work; echo s >in-sub; git add -A; git commit -qm in-sub; cd ../..; git add -A; git commit -qm moved; git submodule status; git submodule foreach -q git status --porcelain'
clean
# Settings are replaced by a rename, which a pin refuses: docs/adr/git-settings-read-for-pins.md.
refused 'an update of a submodule' 'git submodule update'
inside 'git -C libs/sub checkout -q "$(git rev-parse HEAD:libs/sub)"; git -C libs/sub checkout -q work'
refused 'the config of a submodule' 'git -C libs/sub config core.pager x'
refused 'a hook of a submodule' 'echo x >.git/modules/libs/sub/hooks/pre-commit'
refused 'renaming the git directory of a submodule' 'mv .git/modules/libs/sub/hooks .git/modules/libs/sub/h'
cd libs/sub
efr project remove "$HOME/super" >/dev/null
contains "$(efr project add .)" "its git directory is $HOME/super/.git/modules/libs/sub" 'project add of a submodule'
inside 'git commit -q --allow-empty -m alone'
clean
refused 'the config of a submodule by itself' 'git config core.pager x'

# In cautious a reading line of git asks only where git would run something.
stop_daemon
config cautious
model <<'EOM'
return function(request)
  local last = request.messages[#request.messages].content[1]
  if last.kind == "tool_result" then
    return { text = "saw: " .. last.output:gsub("%s+", " ") }
  end
  return { calls = { { name = "shell",
    input = { command = "git status --porcelain; git log -1 --format=%s" } } } }
end
EOM
cd "$P"
# ask: sends a prompt and waits until it is answered or asks.
ask() {
    efr send 'look' >"$T/out" 2>&1 </dev/null &
    local sent=$!
    python3 "$tests/e2e/until.py" "$limit" 'saw: |would run code|does not know|changes what git' cat "$T/out" ||
        fail 'no answer and no question'
    grep -q 'saw: ' "$T/out" || kill -INT "$sent"
    wait "$sent" || true
}
ask
contains "$(cat "$T/out")" 'saw: named' 'a reading line in a clean repository'
printf '#!/bin/sh\ntouch %s/ran\n' "$T" >"$T/monitor"
chmod 755 "$T/monitor"
git config core.fsmonitor "$T/monitor"
rm -f "$T/ran"
ask
contains "$(cat "$T/out")" 'git would run code: core.fsmonitor of .git/config' 'the question'
[[ ! -e $T/ran ]] || fail 'efr itself ran the planted program'
git status >/dev/null
[[ -e $T/ran ]] || fail 'control: git runs the planted program'

# The same from the start-up files of the hidden shell, which efrd itself never had.
git config --unset core.fsmonitor
rm -f "$T/ran"
ask
contains "$(cat "$T/out")" 'saw: named' 'a clean repository again'
printf 'export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=%s\n' "$T/monitor" \
    >>"$HOME/.zshrc"
stop_daemon
ask
contains "$(cat "$T/out")" "the shell's variable GIT_CONFIG_COUNT changes what git does" 'the question'
[[ ! -e $T/ran ]] || fail 'git ran the program of the variable'
say ok
