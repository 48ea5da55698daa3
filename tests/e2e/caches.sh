#!/usr/bin/env bash
# Also as root.
# auto, in a real terminal: a contained line writes below ~/.npm and ~/.cache, and the real directories do not change;
# what it deletes there is asked about: y deletes it in the real cache, n does not, and a list that was refused is not
# raised again. Not covered: every way to write in an overlay (tests/sbx/caches.sh).
. "$(dirname "$0")/lib.sh"
new_home
config auto
mkdir -p "$HOME/.npm" "$HOME/.cache/build/sub" "$HOME/.cache/keep"
head -c 3000000 /dev/zero >"$HOME/.cache/build/sub/object"
head -c 2000000 /dev/zero >"$HOME/.cache/keep/data"
printf 'small\n' >"$HOME/.npm/log"
model <<'EOF'
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
local function has(output, text) return output:find(text, 1, true) end
return function(request)
  local last = request.messages[#request.messages]
  local output = last.content[#last.content].output or ""
  if request.call == 0 then
    return shell("print x >~/.npm/new; rm ~/.npm/log; mkdir ~/.cache/made; rm -r ~/.cache/build; ls -1 ~/.cache; cat ~/.npm/new")
  elseif request.call == 1 then
    if not has(output, "keep\nmade\nx\n") or not has(output, "efr freed 3.0 MB in ~/.cache/build (1 path)") then
      return { text = "WRONG 1: " .. output }
    end
    return shell("ls -1 ~/.cache ~/.npm; rm -r ~/.cache/keep")
  elseif request.call == 2 then
    if has(output, "made") or has(output, "new") or has(output, "build")
      or not has(output, "did not allow deleting 1 path") then
      return { text = "WRONG 2: " .. output }
    end
    return shell("rm -r ~/.cache/keep; echo third")
  end
  if has(output, "third") and not has(output, "[efr ") and not has(output, "allow") then return { text = "the caches were right" } end
  return { text = "WRONG 3: " .. output }
end
EOF
cd "$P"
project
terminal
type_line "cd ~/p; print in-\$PWD"
see 'in-.*/home/p'
mark
type_line ', clean up'
see 'delete this in the real cache, too'
see '3\.0 MB in ~/\.cache/build \(1 path\)'
[[ -e $HOME/.cache/build/sub/object ]] || fail 'deleted before the answer'
keys y
see 'freed 3\.0 MB in ~/\.cache/build \(1 path\)'
see '2\.0 MB in ~/\.cache/keep'
see 'y allow'
mark
keys n
see 'the caches were right'
see 'done in'
[[ ! -e $HOME/.cache/build ]] || fail 'the real directory is still there after a yes'
[[ -e $HOME/.cache/keep/data ]] || fail 'the real directory went after a no'
[[ ! -e $HOME/.cache/made && ! -e $HOME/.npm/new ]] || fail 'a write reached the real cache'
equals "$(cat "$HOME/.npm/log")" small 'what is small'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_requested'")" 2 'questions'
equals "$(ls -A "$HOME/.local/state/efr/sandbox"/*/layers 2>/dev/null)" '' 'layers that were left'
