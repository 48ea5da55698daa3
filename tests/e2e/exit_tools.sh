#!/usr/bin/env bash
# File tools in auto follow the decisions and the path rules of commands: a link that a command planted is written
# through only as a write of what it leads to (cases 14); a read through a link is a read of the hidden file (9); a name
# that a program runs later is a floor for both, another one is named at the end of the turn (15); a path outside
# asks with its facts, and what changes before the start refuses. Not covered: the tools alone (spec/tools).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
. "$(dirname "$0")/lib_exits.sh"
exits_model
cat >>"$HOME/.config/efr/config.toml" <<EOF2
[[permissions.rules]]
action = "read"
resource = { under = "$HOME/private" }
effect = "deny"
EOF2
mkdir -p ~/notes ~/private ~/.aws
echo SECRET >~/.aws/config
echo PRIVATE >~/private/f
before=$(<~/.zshrc)
cd "$P"
project
efr status >/dev/null

# 14: the command plants a link, which is its right; the tool does not write through it unasked.
ask allow 'ln -s ~/.zshrc out'
is '"approval_requested" in e' False
ask deny 'TOOL write_file path=out content=evil'
is 'sorted(e["exit_requested"]["kinds"])' "['persistence']"
is 'e["approval_requested"]["exit"]["launch"]["kind"]' direct
contains "$(value 'e["exit_requested"]["record"]["facts"]["targets"]')" "'floor': True.*/home/[.]zshrc'"
equals "$(<~/.zshrc)" "$before" 'the startup file'
ask "do:rm out; ln -s $HOME/.zprofile out" 'TOOL write_file path=out content=evil'
is 'e["tool_call_completed"]["refusal"]["kind"]' changed
[[ ! -e ~/.zprofile ]] || fail 'the tool wrote through another link'
rm out
ln -s ~/.zshrc out
ask allow 'TOOL write_file path=out content=asked'
equals "$(<~/.zshrc)" asked 'after a yes'
[[ -L out ]] || fail 'the link is gone'
printf '%s\n' "$before" >~/.zshrc

# 9: one decision point for each way to a file.
ln -s ~/.aws/config masked
ln -s ~/private/f denied
for what in 'TOOL read_file path=masked' 'cat masked'; do
    ask deny "$what"
    is 'e["exit_requested"]["kinds"]' "['masked_read']"
    lacks "$(output)" SECRET "$what"
done
ask allow 'cat masked'
contains "$(output)" SECRET 'after a yes'
for what in 'TOOL read_file path=denied' 'cat denied' 'TOOL edit path=denied old_string=a new_string=b'; do
    ask allow "$what"
    is '"approval_requested" in e, e["tool_call_completed"]["refusal"]["kind"]' "(False, 'floor')"
    contains "$(value 'e["tool_call_completed"]["refusal"]["reason"]')" 'permissions.rules\[0\]'
done

# 15: a protected name asks, whoever makes it; others are told of.
for what in 'print evil >.envrc' 'TOOL write_file path=.envrc content=evil'; do
    ask deny "$what"
    is 'e["exit_requested"]["kinds"]' "['persistence']"
    [[ ! -e .envrc ]] || fail "$what made it"
done
contains "$(efr new -- 'print all: >justfile' 2>&1)" 'this turn changed files that run code later' 'the report'

# A path outside.
ask deny 'TOOL write_file path=~/notes/a content=new'
is 'e["exit_requested"]["kinds"]' "['write']"
contains "$(value 'e["approval_requested"]["exit"]["facts"]')" 'notes/a does not exist yet'
[[ ! -e ~/notes/a ]] || fail 'a denied write'
ask allow 'TOOL write_file path=~/notes/a content=new'
equals "$(<~/notes/a)" new 'an allowed write'
ask 'do:echo mine >>~/notes/a' 'TOOL edit path=~/notes/a old_string=new new_string=old'
is 'e["tool_call_completed"]["refusal"]["kind"]' changed
equals "$(<~/notes/a)" newmine 'a file that changed meanwhile'
