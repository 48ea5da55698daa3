#!/usr/bin/env bash
# A call of the model that writes into a directory of sandbox.write_roots, and into a project inside
# one: both come back with one undo, each file once. What the call does not name is not looked at.
. "$(dirname "$0")/lib.sh"
new_home
config auto
mkdir -p "$HOME/more/inner" "$HOME/other"
printf '[sandbox]\nwrite_roots = ["%s/more", "%s/other", "%s"]\n' "$HOME" "$HOME" "$P" >>"$HOME/.config/efr/config.toml"
model <<'END'
return function(request)
  if request.call == 0 then
    return { calls = { { name = "shell", input = {
      command = "echo new >~/more/f; echo made >~/more/made; echo new >~/p/f" } } } }
  end
  return { text = "done" }
end
END
cd "$P"
project
for dir in "$HOME/more" "$HOME/other" "$P"; do printf 'old\n' >"$dir/f"; done
contains "$(efr send -- go)" 'done' 'the turn'
equals "$(cat ~/more/f ~/p/f ~/more/made)" $'new\nnew\nmade' 'what the call wrote'
roots=("$HOME"/.local/share/efr/snapshots/*.git)
equals ${#roots[@]} 3 'stores: the project, the scratch directory, the root that was named'
efr undo --yes >"$T/out"
equals "$(cat ~/more/f ~/p/f ~/other/f)" $'old\nold\nold' 'after the undo'
[[ ! -e ~/more/made ]] || fail 'undo left a file'
