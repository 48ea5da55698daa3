#!/usr/bin/env bash
# ./dev install and ./dev uninstall into a home of the test's own: a release build that is found in its
# place, starts its daemon, plays a turn, and leaves only the user's data behind.
. "$(dirname "$0")/lib.sh"
new_home
dev=$(dirname "$tests")/dev
out=$("$dev" install </dev/null 2>&1) || fail "install: $out"
contains "$out" 'source ~/.local/share/zsh/plugins/efr/efr.plugin.zsh' install
for file in bin/efr bin/efrd lib/efr/efr-sbx lib/efr/efr-worker; do
    [[ -x $HOME/.local/$file ]] || fail "not installed: $file"
done

PATH=$HOME/.local/bin:/usr/bin:/bin
config
model <<'EOF'
return function(request)
  if request.call == 0 then
    return { calls = { { name = "shell", input = { command = "print in-the-$((40+2))" } } } }
  end
  return { text = "the output: " .. request.messages[#request.messages].content[1].output }
end
EOF
cd "$P"
project
contains "$(efr send hello </dev/null 2>&1)" 'in-the-42' "an installed turn"
contains "$(zsh -fc "source $HOME/.local/share/zsh/plugins/efr/efr.plugin.zsh && print loaded" 2>&1)" \
    'loaded' plugin
stop_daemon

out=$("$dev" uninstall </dev/null 2>&1) || fail "uninstall: $out"
equals "$(find "$HOME/.local" -type f -path '*/efr*' ! -path '*/state/*' ! -path "*/share/efr/*")" '' 'left behind'
for dir in .local/bin .local/lib .local/share/zsh .local/share/man .config/systemd; do
    [[ ! -e $HOME/$dir ]] || fail "an empty $dir stays behind"
done
[[ -f $db ]] || fail "uninstall took the conversations"
say ok
