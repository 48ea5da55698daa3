#!/usr/bin/env bash
# Also as root.
# `efr run --dry`: the command runs in overlays of what it may write, nothing changes before it is kept, what
# is kept is what the command made, and efr undo takes it back. Both backends where bubblewrap is there.
# Not covered: how a layer becomes a tree (spec/store/snapshot_layer_spec.lua).
. "$(dirname "$0")/lib.sh"
new_home
unset EFR_SBX_BACKEND # both are looked at here
config auto
model <<'EOF'
return function() error("no model may be asked") end
EOF
cd "$P"
project

fill() {
    rm -rf "${P:?}"/* "$P"/.[!.]*
    printf 'one\n' >a
    printf 'gone\n' >b
    mkdir -p d/deep keep new
    printf 'x\n' >d/deep/x
    printf 'k\n' >keep/k
    chmod 600 keep/k
    ln -s a link
    printf '%s\n' 'again' >again
}

# All that lies in the project, with modes.
look() { (cd "$P" && find . -path ./.git -prune -o -printf '%p %y %m %l ' -type f -exec cat {} \; -o -path ./.git -prune -o -printf '\n' | sort); }

work='echo two >a; rm b; rm -r d; mkdir d; echo y >d/y; ln -sf keep link; chmod 755 keep/k; mkdir -p n/m; echo f >n/m/f;
  mv again moved; rmdir new; mkdir empty; echo said; exit 7'

one_backend() {
    fill
    before=$(look)
    undos=$(efr undo --list 2>&1)
    rc=0
    out=$(efr run --dry --no -- sh -c "$work" 2>"$T/err" </dev/null) || rc=$?
    equals "$rc $out" '7 said' "exit status and output ($1)"
    equals "$(look)" "$before" "a dry run that is not kept ($1)"
    err=$(cat "$T/err")
    contains "$err" '^\+two$' "the diff ($1)"
    contains "$err" 'files changed' "the totals ($1)"
    contains "$err" 'nothing was changed' "the answer ($1)"
    equals "$(efr undo --list 2>&1 | wc -l)" "$(wc -l <<<"$undos")" "what can be undone ($1)"
    rc=0
    efr run --dry --yes -- sh -c "$work" >/dev/null 2>"$T/err" </dev/null || rc=$?
    equals "$rc" 7 "exit status ($1)"
    contains "$(cat "$T/err")" '^kept: .* written, .* moved to .*efr undo takes it back' "what is kept ($1)"
    kept=$(look)
    fill
    efr run -- sh -c "$work" >/dev/null 2>&1 || true
    equals "$kept" "$(look)" "what a dry run keeps and what a run does ($1)"
    efr undo --yes 2>/dev/null
    equals "$(look)" "$before" "the undo of the run ($1)"
    efr run --dry --yes -- sh -c "$work" >/dev/null 2>&1 </dev/null || true
    equals "$(look)" "$kept" "a second dry run ($1)"
    efr undo --yes 2>/dev/null
    equals "$(look)" "$before" "the undo of a dry run ($1)"
    equals "$(find "$HOME/.local/state/efr/sandbox" -maxdepth 1 -name 'dry-*')" '' "layers ($1)"
}
one_backend native

# An ordinary user's bubblewrap; the sandbox of root needs none other.
efr config set sandbox.backend bwrap >/dev/null
one_backend bwrap
efr config set sandbox.backend native >/dev/null

# What changed meanwhile stays as it is; a commit, and a folder that no snapshot holds, are told.
fill
git init -q -b main .
printf 'big/\nbuild/\n' >.gitignore
git add -A && git -c user.name=a -c user.email=a@b commit -qm one
mkdir build
echo 1 >build/out
before=$(look)
mkfifo "$T/go" "$T/told"
rc=0
efr run --dry --yes -- sh -c 'echo run >a; echo made >made; echo 2 >build/out
  git -c user.name=a -c user.email=a@b commit -qam two; echo ready; read _' <"$T/go" >"$T/told" 2>"$T/err" &
client=$!
exec 3>"$T/go" 4<"$T/told"
read -r -t "$limit" _ <&4
equals "$(cat a) $(ls)" $'one a\nagain\nb\nbuild\nd\nkeep\nlink\nnew' 'the project while it runs'
echo user >a
echo >&3
wait "$client" || rc=$?
exec 3>&- 4<&-
equals "$rc $(cat a) $(cat made) $(cat build/out)" '0 user made 1' 'what changed meanwhile'
err=$(cat "$T/err")
contains "$err" '^skip ~/p/a .changed since' 'what changed meanwhile'
contains "$err" 'not kept ~/p/\.git' 'a commit'
contains "$err" 'not kept ~/p/build' 'an ignored folder'
equals "$(git log --format=%s)" one 'the history'

# Nobody to ask, nothing to keep, a single file.
rc=0
efr run --dry -- touch never 2>"$T/err" </dev/null || rc=$?
equals "$rc" 2 'no terminal'
contains "$(cat "$T/err")" 'give --yes or --no' 'no terminal'
out=$(efr run --dry --yes -- true 2>&1 </dev/null)
contains "$out" 'would change nothing' 'a command that changes nothing'
rc=0
efr run --dry --yes --write a -- true 2>"$T/err" </dev/null || rc=$?
contains "$rc $(cat "$T/err")" '^[1-9].*overlays of directories only' 'a single file'

# What is hidden or protected in the project stays what it is.
mkdir -p sub .vscode
printf 'secret\n' >sub/.env
printf '{}\n' >.vscode/tasks.json
efr run --dry --yes -- sh -c 'mv sub s2; mkdir -p sub; echo evil >sub/.env; rm -rf .vscode; mkdir .vscode
  echo evil >.vscode/tasks.json; echo new >sub/new' >/dev/null 2>&1 </dev/null || true
equals "$(cat sub/.env .vscode/tasks.json sub/new)" $'secret\n{}\nnew' 'what is hidden or protected'
