#!/usr/bin/env bash
# The settings: efr config set, unset, check, edit, schema and show on a real file, with and without a
# daemon, through a link; and the live reload of a running daemon: a file written in place, one that
# is renamed over the old one, a link with another target, a broken file, a key that needs a restart,
# projects.toml by hand, a terminal that is told. What an editor of the text keeps is in spec/config/edit_spec.lua.
. "$(dirname "$0")/lib.sh"
new_home
file=$HOME/.config/efr/config.toml
dots=$HOME/dots
mkdir "$dots"

# status EXPRESSION: until the daemon's admin.status satisfies it (c = its config), with a limit.
status() {
    python3 - "$tests/e2e" "$run/daemon.sock" "$limit" "$1" <<'PY' || fail "status is never: $1"
import sys, time
sys.path.insert(0, sys.argv[1])
from client import Client
client, end = Client(sys.argv[2]), time.monotonic() + float(sys.argv[3])
while True:
    c = client.request("admin.status", {})["config"]
    if eval(sys.argv[4]):
        break
    if time.monotonic() > end:
        sys.exit(repr(c))
PY
}

# refuses CODE TEXT COMMAND...: its exit code, and its words on stderr.
refuses() {
    local code=$1 text=$2 got=0
    shift 2
    "$@" >/dev/null 2>"$T/err" || got=$?
    [[ $got == "$code" ]] || fail "$*: exit $got, not $code: $(cat "$T/err")"
    grep -qF -- "$text" "$T/err" || fail "$*: no '$text' in: $(cat "$T/err")"
}
# shows LINE COMMAND...: succeeds with a line that matches.
shows() {
    local line=$1
    shift
    "$@" >"$T/out" || fail "$*: exit $?"
    grep -qx -- "$line" "$T/out" || fail "$*: no line '$line' in: $(cat "$T/out")"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# ---- without a daemon ----
shows '.*: absent; the defaults are in force' efr config check
shows 'efrd does not run; it reads the file when it starts' efr config set permissions.mode auto
[[ $(stat -c %a "$file") == 600 ]] || fail "mode of a new file"
shows ".*/config.toml: fine" efr config check
grep -A1 '^#mode = "cautious"$' "$file" | grep -qx 'mode = "auto"' || fail "not below its comment"
shows 'mode = "auto"  # file' efr config show
shows '# efrd does not run' efr config show
[[ $(efr config show permissions.mode) == 'permissions.mode = "auto"  # file' ]] || fail "show of one key"
[[ $(efr config show sandbox.mask) == 'sandbox.mask = []  # default' ]] || fail "show of a default"
refuses 2 'unknown key permissions.moed; did you mean permissions.mode?' efr config show permissions.moed
refuses 2 'unknown key zzzzzz; see efr config show' efr config show zzzzzz
shows 'permissions.mode = "auto"  # file' efrd --print-config
shows 'sandbox.mask = \[\]  # default' efrd --print-config
cp "$file" "$T/before"
refuses 2 'permissions.mode must be one of' efr config set permissions.mode fast
refuses 2 'unknown key permissions.moed' efr config set permissions.moed auto
refuses 2 'item 1 must be absolute' efr config set sandbox.mask /a,b
refuses 3 'efrd does not run' efr config reload
same "$file" "$T/before"
refuses 2 'unknown key permissions.moed' efr config unset permissions.moed
efr config unset permissions.mode >/dev/null
shows "permissions.mode is not set in $file" efr config unset permissions.mode
same "$file" "$tests/../docs/examples/config.toml"
efr config schema | python3 -c 'import json, sys; s = json.load(sys.stdin)
assert s["properties"]["permissions"]["properties"]["mode"]["enum"][0] == "manual", s'

# A link to a file of the user's: the link and the comments stay.
printf '# mine\r\n[permissions] # why\r\nmode = "auto" # fast\r\n' >"$dots/efr.toml"
ln -sf ../../dots/efr.toml "$file"
efr config set permissions.mode cautious >/dev/null
efr config set sandbox.mask '/a, /b c' >/dev/null
[[ $(readlink "$file") == ../../dots/efr.toml ]] || fail "the link is gone"
printf '# mine\r\n[permissions] # why\r\nmode = "cautious" # fast\r\n\r\n[sandbox]\r\nmask = ["/a", "/b c"]\r\n' |
    cmp - "$dots/efr.toml" || fail "the target is not as it should be"
printf '[permissions]\nmode = "auto"\nmoed = 1\n' >"$T/bad.toml"
refuses 1 "$T/bad.toml line 3 column 1: unknown key permissions.moed" efr config check "$T/bad.toml"
ln -sfn nowhere.toml "$file"
refuses 1 'is a link to nowhere.toml, which does not exist' efr config set log debug
[[ ! -e $HOME/.config/efr/nowhere.toml ]] || fail "wrote through a link to nothing"
ln -sfn ../../dots/efr.toml "$file"

# The editor works on the target; a broken file is told, and without a terminal it does not ask.
cat >"$T/editor" <<'SH'
#!/bin/sh
printf '%s\n' "$1" >"$T/edited"
[ -z "$TEXT" ] || printf "$TEXT" >"$1"
SH
chmod +x "$T/editor"
export T
TEXT='log = "warn"\n' EDITOR=false VISUAL="$T/editor" efr config edit >/dev/null
[[ $(cat "$T/edited") == "$dots/efr.toml" && $(cat "$file") == 'log = "warn"' ]] || fail "edit"
TEXT='log = 1\n' VISUAL="$T/editor" refuses 1 'line 1 column 1: log must be a string' efr config edit </dev/null
refuses 1 'ended with status 1' env VISUAL=false efr config edit
config
printf 'return function() return { text = "hello" } end\n' | model

# ---- with a daemon ----
efr status >/dev/null
cp "$dots/efr.toml" "$T/good.toml"

# A terminal with a conversation, which is told of errors.
python3 - "$tests/e2e" "$run/daemon.sock" "$P" <<'PY'
import sys, uuid
sys.path.insert(0, sys.argv[1])
from client import Client
Client(sys.argv[2]).request("prompt.send", {
    "command_id": str(uuid.uuid4()), "text": "hello",
    "context": {"pwd": sys.argv[3], "tty": "/dev/pts/4077"}})
PY
notices=$run/notices/pts-4077

# In place.
printf 'nonsense = 1\n' >>"$dots/efr.toml"
status 'c.get("reload_error") and c["reload_error"]["line"] == 7 and c["reload_error"]["key"] == "permissions.nonsense"'
shows 'config error .* line 7 column 1: unknown key permissions.nonsense' efr status
refuses 1 'line 7 column 1: unknown key permissions.nonsense' efr config show
refuses 1 'unknown key permissions.nonsense' efr config reload
refuses 1 'unknown key permissions.nonsense' efr config set log debug
[[ $(grep -c 'config.toml has an error; the old settings stay: line 7 column 1: unknown key' "$notices") == 1 ]] ||
    fail "the terminal is not told once: $(cat "$notices")"
shows 'permissions.nonsense is taken out of .*' efr config unset permissions.nonsense
same "$dots/efr.toml" "$T/good.toml"
printf 'nonsense = 2\n' >>"$dots/efr.toml"
status 'c.get("reload_error")'

# A new file renamed over the target, as editors save.
cp "$T/good.toml" "$dots/efr.toml.new"
mv "$dots/efr.toml.new" "$dots/efr.toml"
status '"reload_error" not in c'
shows applied efr config reload

# Another target of the link; a key that waits for a restart.
sed 's/^provider = .*/provider = "openai-compatible"/' "$T/good.toml" >"$dots/two.toml"
ln -s ../../dots/two.toml "$HOME/.config/efr/link.new"
mv -T "$HOME/.config/efr/link.new" "$file"
status 'c["restart_needed"] == ["model.provider"]'
shows 'restart for *model.provider' efr status
shows 'restart efrd to apply: model.provider' efr config reload
grep -qx 'efr: restart efrd to apply: model.provider' "$notices" || fail "the terminal is not told of the restart"
shows 'restart_needed = \["model.provider"\]' efr config show
# The new target is watched from now on, the old one no more.
printf 'broken' >"$dots/efr.toml"
cp "$T/good.toml" "$dots/two.toml"
status 'c["restart_needed"] == [] and "reload_error" not in c'
shows 'restart efrd to apply: openai_compatible.base_url' \
    efr config set openai_compatible.base_url http://localhost:1/v1
efr config unset openai_compatible.base_url >/dev/null
same "$dots/two.toml" "$T/good.toml"

# A file that goes and comes; the defaults are in force between.
rm "$file"
status 'c["exists"] is False and c["restart_needed"] == ["model.provider"]'
cp "$T/good.toml" "$file"
status 'c["exists"] and c["restart_needed"] == []'

# projects.toml by hand.
mkdir "$HOME/q"
printf '[[projects]]\nid = "0199a000-0000-7000-8000-000000000001"\nroot = "%s"\n' "$HOME/q" >"$HOME/.config/efr/projects.toml"
python3 - "$tests/e2e" "$run/daemon.sock" "$HOME/q" "$limit" <<'PY' || fail "the project is not seen"
import sys, time
sys.path.insert(0, sys.argv[1])
from client import Client
client, end = Client(sys.argv[2]), time.monotonic() + float(sys.argv[4])
while [p["root"] for p in client.request("projects.list", {})["projects"]] != [sys.argv[3]]:
    if time.monotonic() > end:
        sys.exit(1)
PY
# A directory that holds the home directory is a project only when it is named.
(cd "$HOME" && refuses 1 'is too wide for a project' efr project add)
shows "added $HOME to .*/projects.toml" efr project add "$HOME"
shows "removed $HOME" efr project remove "$HOME"
shows "- *$HOME/q" efr project list
printf 'x =\n' >>"$HOME/.config/efr/projects.toml"
status 'c.get("reload_error") and c["reload_error"]["line"] == 4'
