#!/usr/bin/env bash
# Each kind of exit, allowed, denied, expired and interrupted: whether it ran, with which rights (in the sandbox or
# outside of it), which grants were recorded, and who decided. The programs are the test's own: what a kind rests on is
# the name, and a real one would need a desktop, a bus or root. CI takes some kinds; the long size does all, each in
# all four ways. Not covered: what a grant leaves closed (exit_grants.sh).
# Also as root.
. "$(dirname "$0")/lib.sh"
new_home
config auto
sandbox_key "synced_dirs = [\"$HOME/Sync\"]"
. "$(dirname "$0")/lib_exits.sh"
exits_model
export XDG_RUNTIME_DIR=$T/rt
mkdir -m 700 "$XDG_RUNTIME_DIR"
run=$XDG_RUNTIME_DIR/efr
mkdir -p ~/bin ~/Sync ~/notes ~/.config ~/.aws
echo x >~/.aws/config
python3 - "$XDG_RUNTIME_DIR"/{bus,sway-ipc.1.sock} ~/s <<'EOT'
import socket, sys
for path in sys.argv[1:]: socket.socket(socket.AF_UNIX).bind(path)
EOT
# Tells with which rights it ran, in a place that both may write.
cat >~/bin/sudo <<'EOT'
#!/bin/sh
printf '%s\n' "${EFR_SANDBOX:-outside}" >>ran
EOT
chmod 755 ~/bin/sudo
for name in curl ss crontab swaymsg git chmod; do cp ~/bin/sudo ~/bin/$name; done
printf 'path=(~/bin $path)\n' >>"$HOME/.zshrc"
cd "$P"
/usr/bin/git init -q .
echo old >kept
/usr/bin/git add kept
project
printf 'sudo() { printf "%%s\\n" "${EFR_SANDBOX:-outside}" >>ran }; sudo\n' >tell.zsh
efr status >/dev/null

# check MODE KIND RIGHTS GRANTS PROMPT
check() {
    rm -f ran
    ask "$1" "$5"
    is 'e["exit_requested"]["kinds"]' "['$2']"
    is '" ".join(g["kind"] for g in e["exit_requested"]["grants"])' "$4"
    case $1 in
        allow)
            is 'e["exit_judged"]["judge"], e["exit_judged"]["verdict"]' "('user', 'allow')"
            is 'e["tool_call_started"]["launch"]["kind"]' "$([[ $3 == 1 ]] && echo contained || echo unsandboxed)"
            equals "$(cat ran 2>&1)" "$3" "the rights of $2"
            ;;
        deny)
            is 'e["exit_judged"]["verdict"], e["tool_call_completed"]["refusal"]["kind"]' "('deny', 'user')"
            ;;
        expire)
            is '"exit_judged" in e, e["tool_call_completed"]["refusal"]["kind"]' "(False, 'expired')"
            ;;
        interrupt)
            is '"exit_judged" in e, o["end"]' "(False, 'turn_interrupted')"
            ;;
    esac
    [[ $1 == allow || ! -e ran ]] || fail "$2 ran after $1"
}
# kinds MODE [KIND]: every kind, or one.
kinds() {
    local kind rights grants prompt
    while IFS='|' read -r kind rights grants prompt; do
        [[ -z $kind || -n ${2-} && $kind != "$2" ]] && continue
        check "$1" "$kind" "$rights" "$grants" "${prompt//@/$'\n'}"
        say "$kind: $1"
    done <<<"$rows"
}
rows='
privilege|outside||sudo x
upload|outside||git push origin x
outside|outside||crontab -l
outside|outside||zsh tell.zsh@needs outside=true
host|1|open_network|curl https://h.example
host_view|1|network_view|ss -K dst 1.2.3.4
write|1|write|zsh tell.zsh@needs write=~/notes
socket|1|socket|zsh tell.zsh@needs sockets=~/s
bus|1|bus|zsh tell.zsh@needs bus=session
device|1|device|zsh tell.zsh@needs device=/dev/kmsg
masked_read|1|unmask|zsh tell.zsh@needs unmask=~/.aws/config
userns|1|userns|zsh tell.zsh@needs userns=true
destructive|1||git stash clear
synced_write|outside||zsh tell.zsh >~/Sync/f
above_root|outside||chmod 700 ~/p
persistence|outside||zsh tell.zsh >>~/.zprofile
desktop_ipc|1|socket|swaymsg -t get_tree
'
export SWAYSOCK=$XDG_RUNTIME_DIR/sway-ipc.1.sock
some=(privilege write) more=(upload host persistence desktop_ipc)
[[ $size != long ]] || some=('') more=()
for kind in "${some[@]}" "${more[@]}"; do kinds allow "$kind"; done
# Floors: no question, whoever is there.
for what in 'secret|cat ~/.ssh/id' 'config|print x >>~/.config/efr/config.toml'; do
    ask allow "${what#*|}"
    is 'e["exit_requested"]["kinds"], "approval_requested" in e' "(['${what%|*}'], False)"
    is 'e["exit_judged"]["judge"], e["tool_call_completed"]["refusal"]["kind"]' "('floor', 'floor')"
done
for kind in "${some[@]}"; do
    kinds deny "$kind"
    kinds interrupt "$kind"
done
printf '[conversation]\napproval_timeout_secs = 1\n' >>"$HOME/.config/efr/config.toml"
efr config reload >/dev/null
for kind in "${some[@]}"; do kinds expire "$kind"; done
