#!/usr/bin/env bash
# Also as root.
# What the default envelope hides from a contained command, through the daemon's own plan: secrets,
# histories, .env files, efr's own data and socket, git's hooks; as root also host keys,
# /etc/ssl/private, container secrets and the secrets of other homes, in a mount namespace that has
# them. Not covered: the list of paths itself (spec/sbx/masks_spec.lua), system calls (tests/sbx).
. "$(dirname "$0")/lib.sh"

# A machine with the places that only root's envelope knows. Nothing of it is on the host.
if [[ $(id -u) == 0 && -z ${EFR_TEST_NAMESPACE-} ]]; then
    export EFR_TEST_NAMESPACE=1
    exec unshare --mount --propagation private bash "$0"
fi
new_home
config auto
model <<'END'
return function() error("no model may be asked") end
END
secrets=(.ssh/id_test .aws/credentials .npmrc .netrc .zsh_history .docker/config.json .config/gh/hosts.yml)
for name in "${secrets[@]}"; do
    mkdir -p "$HOME/${name%/*}" 2>/dev/null || true
    [[ $name == */* ]] || rm -rf "${HOME:?}/$name"
    printf 'SECRET-%s\n' "$name" >"$HOME/$name"
done
if [[ $(id -u) == 0 ]]; then
    mount -t tmpfs none /run
    mkdir -p /run/secrets /run/dbus /run/docker /run/user/1000
    printf 'SECRET-run\n' | tee /run/secrets/key /run/docker/key >/run/user/1000/key
    mount -t tmpfs none /etc/ssl
    mkdir -p /etc/ssl/private
    printf 'SECRET-ssl\n' >/etc/ssl/private/key.pem
    mkdir -p "$T/ssh" "$T/other/.ssh"
    printf 'SECRET-host\n' >"$T/ssh/ssh_host_test_key"
    printf 'public\n' >"$T/ssh/ssh_config"
    [[ -d /etc/ssh ]] && mount --bind "$T/ssh" /etc/ssh
    printf 'SECRET-other\n' >"$T/other/.ssh/id_test"
    { cat /etc/passwd && printf 'efrother:x:54321:54321::%s/other:/bin/sh\n' "$T"; } >"$T/passwd"
    mount --bind "$T/passwd" /etc/passwd
    # The daemon's sockets, served by a host program.
    python3 "$tests/sbx/serve.py" /run/dbus/system_bus_socket H >"$T/ready" &
    server=$!
fi
cd "$P"
git init -q .
printf 'SECRET-env\n' | tee .env >.env.local
printf 'public\n' >.env.example
project

# hidden PATH...: the command reads nothing of it.
hidden() {
    local path out
    for path in "$@"; do
        [[ -e $path ]] || fail "$path is not there, so the test shows nothing"
        out=$(efr run -- cat "$path" 2>&1) || true
        lacks "$out" SECRET "$path"
        out=$(efr run -- sh -c "echo x >>'$path' && echo WRITTEN" 2>&1) || true
        lacks "$out" WRITTEN "$path"
        grep -q SECRET "$path" || fail "$path was changed"
    done
}
hidden "${secrets[@]/#/$HOME/}" "$P/.env" "$P/.env.local"
equals "$(efr run -- cat .env.example)" public 'a file that stays readable'

# efr's own places, its socket and its process.
out=$(efr run -- sh -c "ls -A ~/.local/share/efr ~/.local/state/efr; cat ~/.local/share/efr/efr.sqlite" 2>&1) || true
lacks "$out" 'SQLite|daemon|efr.sqlite$' "efr's own directories"
pid=$(daemon_pid)
out=$(efr run -- cat "/proc/$pid/environ" 2>&1) || true
contains "$out" 'No such file' 'the environment of efrd'
rc=0
out=$(efr run -- "$EFR_BIN/efr" status 2>&1) || rc=$?
[[ $rc != 0 ]] || fail "efr inside reaches efrd: $out"

# git's hooks and settings, and its directory.
for file in .git/config .git/hooks/post-commit; do
    out=$(efr run -- sh -c "echo x >>$file" 2>&1) && fail "$file was written"
    contains "$out" 'Read-only' "$file"
done
out=$(efr run -- mv .git away 2>&1) && fail '.git was renamed'
contains "$out" 'busy' 'rename of .git'

if [[ $(id -u) == 0 ]]; then
    hidden /run/secrets/key /run/docker/key /run/user/1000/key /etc/ssl/private/key.pem \
        "$T/other/.ssh/id_test"
    if [[ -d /etc/ssh ]]; then
        hidden /etc/ssh/ssh_host_test_key
        equals "$(efr run -- cat /etc/ssh/ssh_config)" public 'the rest of /etc/ssh'
    fi
    equals "$(efr run -- cat /etc/shadow 2>&1)" '' '/etc/shadow'
    out=$(efr run -- python3 -c 'import socket
socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket")' 2>&1) && fail 'the bus was reached'
    contains "$out" 'No such file|Permission denied' 'the bus'
    kill "$server"
    wait "$server" 2>/dev/null || true
fi
