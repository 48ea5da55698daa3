#!/bin/bash
# The user's Lua rules with the real programs: efr rules check, explain, test and new without a
# daemon; a daemon that reads the files when they change, keeps the last good version over a restart,
# answers others while the rules hang, and leaves no process behind. What the engine makes of an
# answer is not here.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
new_home
config cautious
model <<'END'
local function shell(line)
  return { calls = { { name = "shell", input = { command = line } } } }
end
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if request.call == 0 then return shell("ls -d /") end
  if request.call == 1 then return shell("git push --force") end
  if request.call == 2 then
    local as_expected = block.is_error and block.output:find("rules.lua:1", 1, true)
    return as_expected and shell("hang") or { text = "WRONG: " .. block.output }
  end
  return { text = "the end" }
end
END
rules=$HOME/.config/efr/rules.lua

say "new and check need no daemon"
contains "$(efr rules check)" 'There are no rules in .*/\.config/efr\.'
text=$(efr rules new)
contains "$text" "wrote $rules"
contains "$text" "wrote ${rules%.lua}_spec.lua"
equals "$(stat -c %a "$rules")" 600
contains "$(efr rules test)" '^1 example, 0 failed$'
rm "$rules"
printf 'mine\n' >"${rules%.lua}_spec.lua"
contains "$(efr rules new)" 'rules_spec.lua is already there; it stays as it is'
equals "$(cat "${rules%.lua}_spec.lua")" mine
rm "${rules%.lua}_spec.lua"
! text=$(efr rules new 2>&1) || fail "new wrote over a file"
contains "$text" 'is already there'
contains "$(efr rules check)" '1 file, 0 entries: no errors'
[[ -z $(daemon_pid) ]] || fail "a daemon was started"

say "errors name file and line"
mkdir "$HOME/.config/efr/rules.d"
printf 'efr.rule {\n  effect = = "ask" }\n' >"$rules"
printf '\n\nlocal x = = 1\n' >"$HOME/.config/efr/rules.d/10-b.lua"
! text=$(efr rules check 2>&1) || fail "check takes a broken file"
contains "$text" "efr: rules.lua:2: unexpected symbol near '='"
contains "$text" "efr: rules.d/10-b.lua:3: unexpected symbol near '='"
rm "$HOME/.config/efr/rules.d/10-b.lua"

say "explain and test"
cat >"$rules" <<'END'
efr.rule { id = "force", effect = "deny", program = "git",
  when = function(cmd) return cmd:has("push") and cmd:might_have("--force") end,
  why = "rewrites history" }
efr.program { name = "deploy", network = true, reads = "~/key" }
efr.rule { id = "hang", effect = "ask", when = function(cmd)
  if cmd.name == "hang" then
    while true do end
  end
end }
END
text=$(efr rules explain 'cd /; git push --force; deploy')
contains "$text" '^deny   rule force of rules.lua:1: rewrites history$'
contains "$text" '^       matches git push --force$'
contains "$text" "^adds   read $HOME/key, by program of rules.lua:4\$"
contains "$text" '^your rules say deny, by rules.lua:1$'
contains "$text" '^efr decides deny; without your rules: ask$'
text=$(efr rules explain 'ls')
contains "$text" '^none of your rules matches$'
contains "$text" '^efr decides allow, with and without them$'
! text=$(efr rules explain hang 2>&1) || fail "a rule that hangs explains"
contains "$text" 'rules.lua:[5-8]: no answer within [0-9]+ ms'
! text=$(efr rules test 2>&1) || fail "no examples count as passed"
contains "$text" 'rules_spec.lua: there is no such file; efr rules test runs'
cat >"$HOME/.config/efr/rules_spec.lua" <<'END'
describe("git", function()
  it("stops a forced push", function()
    expect(judge("git push --force").effect).to.equal("deny")
    expect(judge("git status").effect).never.to.equal("deny")
  end)
end)
END
text=$(efr rules test)
contains "$text" '^ok    git stops a forced push$'
contains "$text" '^1 example, 0 failed$'
printf 'it("is wrong", function()\n  expect(judge("git push").effect).to.equal("ask")\nend)\n' >"$T/other.lua"
! text=$(efr rules test "$T/other.lua") || fail "a failed example counts as passed"
contains "$text" 'other.lua:2: expected nil to equal "ask"'

cat >"$T/endless.lua" <<'END'
describe("loops", function()
  it("has no end", function()
    judge("ls")
    while true do end
  end)
  it("ends", function() expect(judge("git push --force").effect).to.equal("deny") end)
  it("meets a rule that has none", function() judge("hang") end)
end)
END
! text=$(efr rules test "$T/endless.lua") || fail "an example without an end counts as passed"
contains "$text" '^FAIL  loops has no end$'
contains "$text" '^      endless.lua:4: no answer within 1000 ms$'
contains "$text" '^ok    loops ends$'
contains "$text" '^      rules.lua:[5-8]: no answer within 1000 ms$'
contains "$text" '^3 examples, 2 failed$'
cp "$rules" "$T/rules.lua"
cat >>"$rules" <<'END'
efr.preset { name = "corp", hosts = { "git.example.org", "*.example.org" } }
efr.hint { text = "prod is sacred", when = function(line) return line.text:find("prod") ~= nil end }
END
text=$(efr rules check)
contains "$text" '^preset corp of rules.lua:10: git.example.org, \*.example.org$'
contains "$text" '^hint of rules.lua:11, for some lines: prod is sacred$'
printf 'efr.preset { name = "x", hosts = "http://x" }\n' >"$rules"
! text=$(efr rules check 2>&1) || fail "a host that is none was taken"
contains "$text" 'rules.lua:1: efr.preset: hosts must be a host'
cp "$T/rules.lua" "$rules"

say "efr explain decides with them"
text=$(efr explain 'ls; git push --force')
contains "$text" '^decision  deny$'
contains "$text" 'by rule [0-9]+ of the machine policy \(rules.lua:1\) for "git push --force": rewrites history'
contains "$(efr explain deploy)" "read $HOME/key: "
text=$(efr explain --mode auto -- 'hang')
contains "$text" '^decision  ask'
contains "$text" 'rules.lua:[5-8]: no answer within [0-9]+ ms'

say "a turn: what no rule meets runs, a denied call names the rule, a rule that hangs asks"
terminal
mark
type_line ', go'
see 'hang'
see 'rules.lua:[5-8]: no answer within [0-9]+ ms'
see 'y allow'
mark
keys n
see 'the end'
equals "$(sqlite3 "$db" "SELECT count(*) FROM events WHERE kind = 'approval_requested'")" 1 questions
tmux -L "$tmux_name" kill-server

say "the daemon reads the files when they change"
shows() { python3 "$tests/e2e/until.py" "$limit" "$1" efr config show || fail "config show never had /$1/"; }
shows "# active: $rules"
printf 'efr.rule {\n' >"$rules.new" && mv "$rules.new" "$rules"
shows "# warning: $rules line 2: unexpected symbol near <eof>"
text=$(efr explain 'git push --force')
contains "$text" '^decision  deny'
contains "$text" '^rules     rules.lua:2: unexpected symbol near <eof>; the last good version decides$'
[[ -f $HOME/.local/state/efr/rules/good ]] || fail "no good version was kept"

say "a restart takes the last good version"
stop_daemon
efr status >/dev/null
shows "# active: $rules"
shows "# warning: $rules line 2: "

say "no process outlives a killed daemon"
pid=$(pgrep -P "$(daemon_pid)" -f -- '--role rules')
contains "$(cat "/proc/$pid/status")" $'^Seccomp:\t2$'
contains "$(cat "/proc/$pid/status")" $'^NoNewPrivs:\t1$'
contains "$(cat "/proc/$pid/status")" $'^CapEff:\t0+$'
stop_daemon KILL
wait_gone "$pid"
say ok
