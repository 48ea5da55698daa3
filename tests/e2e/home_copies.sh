#!/usr/bin/env bash
# Copies before an approved write outside of the roots, end to end: what the call changed is told, `efr undo` takes it
# back and `--redo` brings it again; directories come whole within the limits; what is hidden is never copied and is
# named; a floor without a copy keeps the call from running. Not covered: how trees are made (spec/store).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
. "$(dirname "$0")/lib_exits.sh"
exits_model
cd "$P"
project
efr status >/dev/null
mkdir -p ~/notes/sub
print() { printf '%s\n' "$@"; }
print one >~/notes/a
print keep >~/notes/b
chmod 640 ~/notes/a
print 'alias x=y' >~/.zshrc2
cp ~/.zshrc "$T/zshrc"
changed() { value '[(x["path"].replace("'"$HOME"'", "~"), x["change"], x["covered"], x.get("floor")) for x in o["events"] if x["kind"] == "home_file_changed"]'; }

# A directory that was opened: what changed, was made and went.
ask allow "zsh -c 'print two >~/notes/a; rm ~/notes/b; print new >~/notes/sub/c'
needs write=$HOME/notes"
equals "$(changed)" "[('~/notes/a', 'modified', True, None), ('~/notes/b', 'deleted', True, None), ('~/notes/sub/c', 'added', True, None)]" 'what changed'
is 'e["turn_completed"]["undo"]["available"], e["turn_completed"].get("changes")' '(True, None)'
out=$(efr undo --yes 2>&1)
contains "$out" '2 files restored, 1 file' 'undo'
equals "$(cat ~/notes/a) $(stat -c %a ~/notes/a) $(cat ~/notes/b)" 'one 640 keep' 'what came back'
[[ ! -e ~/notes/sub/c && -d ~/notes/sub ]] || fail 'a new file stayed, or a directory of the user went'
efr undo --redo --yes >/dev/null 2>&1
equals "$(cat ~/notes/a) $(cat ~/notes/sub/c)" 'two new' 'redo'
[[ ! -e ~/notes/b ]] || fail 'redo left a file'
efr undo --yes >/dev/null 2>&1 || true

# One file, made by the call; another call of the same file.
ask allow 'print made >~/fresh'
equals "$(changed)" "[('~/fresh', 'added', True, None)]" 'a new file'
efr undo --yes >/dev/null 2>&1
[[ ! -e ~/fresh ]] || fail 'the new file stayed'

# A floor: runs outside, is copied, told with a line of its own.
ask allow 'print "# more" >>~/.zshrc'
equals "$(changed)" "[('~/.zshrc', 'modified', True, True)]" 'a floor file'
efr undo --yes >/dev/null 2>&1
cmp ~/.zshrc "$T/zshrc" || fail 'the floor file did not come back'

# The view: a line for the floor, one for what has no copy, one count.
terminal
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'
cp ~/.zshrc "$T/zshrc"
mark
type_line ', print "# again" >>~/.zshrc'
see 'y allow'
keys y
see 'changed ~/.zshrc; efr undo reverts it'
mark
type_line ', cp /etc/hostname ~/notes/sub/host'
see 'y allow'
keys y
see 'changed 1 file in ~; efr undo reverts this turn'
efr undo --yes >/dev/null 2>&1
efr undo --yes >/dev/null 2>&1
cmp ~/.zshrc "$T/zshrc" || fail 'the floor file did not come back after the second turn'

# Changed since by the user: undo does not overwrite it.
ask allow 'print mine >~/notes/a'
print yours >~/notes/a
efr undo --yes >/dev/null 2>&1 && fail 'an undo took a later change away'
equals "$(cat ~/notes/a)" yours 'a later change'

# A file tool.
ask allow "TOOL write_file path=$HOME/notes/tool content=text"
equals "$(changed)" "[('~/notes/tool', 'added', True, None)]" 'a file tool'
is 'e["turn_completed"].get("changes")' None
efr undo --yes >/dev/null 2>&1
[[ ! -e ~/notes/tool ]] || fail 'the file of the tool stayed'

# Hidden: never copied, and the turn names it.
mkdir -p ~/.aws && print secret-word >~/.aws/config
ask allow 'print x >>~/.aws/config'
equals "$(changed)" "[('~/.aws/config', 'modified', False, None)]" 'a hidden file'
efr undo --yes >/dev/null 2>&1 || true
store=$HOME/.local/share/efr/snapshots/home.git
for object in $(git --git-dir="$store" cat-file --batch-all-objects --batch-check='%(objectname)'); do
    lacks "$(git --git-dir="$store" cat-file -p "$object" 2>/dev/null | tr -d '\0')" secret-word 'the store'
done

# Over the limits: only the target has a copy. A repository in the directory is named.
printf '[snapshot]\nhome_max_files = 3\n' >>"$HOME/.config/efr/config.toml"
efr config reload >/dev/null
mkdir -p ~/big && touch ~/big/{1,2,3,4,5}
ask allow 'cp /etc/hostname ~/big/1'
contains "$(value 'e["turn_completed"]["undo"]["not_covered"]')" "$HOME/big"
efr undo --yes >/dev/null 2>&1
[[ ! -s ~/big/1 ]] || fail 'the target did not come back'
sed -i '/^\[snapshot\]/,$d' "$HOME/.config/efr/config.toml"
efr config reload >/dev/null

# Unreadable, and a floor in a repository: the call does not run.
if [[ $(id -u) != 0 ]]; then
    print x >~/notes/locked
    chmod 000 ~/notes/locked
    ask allow 'cp /etc/hostname ~/notes/other'
    is 'e["tool_call_completed"]["refusal"]["kind"]' snapshot
    [[ ! -e ~/notes/other ]] || fail 'a call ran without a copy'
    chmod 600 ~/notes/locked
fi
git init -q ~/repo
ask allow 'print x >~/repo/.git/hooks/post-commit'
is 'e["tool_call_completed"]["refusal"]["kind"]' snapshot
[[ ! -e ~/repo/.git/hooks/post-commit ]] || fail 'a hook was written without a copy'

# A link stays a link; the file behind it comes back.
ln -s ../notes/a ~/sublink 2>/dev/null
ln -sf "$HOME/notes/a" ~/link
before=$(cat ~/notes/a)
ask allow 'print through >~/link'
efr undo --yes >/dev/null 2>&1
equals "$(cat ~/notes/a) $(readlink ~/link)" "$before $HOME/notes/a" 'a file behind a link'

# A unit that is enabled: the link comes back off. systemctl stands for the real one, and runs outside.
mkdir -p ~/bin ~/.config/systemd/user
printf '#!/bin/sh\nmkdir -p ~/.config/systemd/user/default.target.wants\nln -s ../x.service ~/.config/systemd/user/default.target.wants/x.service\n' >~/bin/systemctl
chmod 755 ~/bin/systemctl
printf 'path=(~/bin $path)\n' >>~/.zshrc
print '[Service]' >~/.config/systemd/user/x.service
stop_daemon TERM
efr status >/dev/null
ask allow 'systemctl --user enable x.service'
equals "$(changed)" "[('~/.config/systemd/user/default.target.wants/x.service', 'added', True, True)]" 'a unit link'
efr undo --yes >/dev/null 2>&1
[[ ! -L ~/.config/systemd/user/default.target.wants/x.service && -e ~/.config/systemd/user/x.service ]] || fail 'the unit is still enabled'
