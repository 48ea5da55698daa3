-- Turns as a client sees them: {name, steps}. A step is an event, {draft=}, or {frame=seconds}.

local T <const> = "0199a000-0000-7000-8000-000000000001"
local C <const> = "0199a000-0000-7000-8000-00000000000c"

local function started()
  return { kind = "turn_started", turn_id = T, cwd = "/home/u/p" }
end

local function text(index, words)
  return { kind = "assistant_message_completed", turn_id = T, index = index, text = words }
end

local function call(tool, input, more)
  local event = { kind = "tool_call_started", turn_id = T, call_id = C, tool = tool, input = input }
  for key, value in pairs(more or {}) do
    event[key] = value
  end
  return event
end

local function result(fields)
  fields.kind, fields.turn_id, fields.call_id = "tool_call_completed", T, C
  return fields
end

local function done(fields)
  fields = fields or {}
  fields.kind, fields.turn_id = fields.kind or "turn_completed", T
  return fields
end

local DIFF <const> = [[
--- a/src/a.lua
+++ b/src/a.lua
@@ -1,3 +1,3 @@
 local M = {}
--- the old comment, which is a line that looks like a file header
+-- the new comment, long enough that a narrow terminal has to continue it in the next row
 return M
]]

local function output(tail)
  local event = { kind = "tool_call_output_updated", turn_id = T, call_id = C }
  event.tail, event.bytes = tail, #tail
  return event
end

local function updated(index, offset, delta)
  local event = { kind = "assistant_message_updated", turn_id = T, index = index }
  event.offset, event.delta = offset, delta
  return event
end

local function asked(id, tool, summary, diff)
  local event = { kind = "approval_requested", turn_id = T, call_id = id, tool = tool }
  event.reasons = { "the line is not read yet, so every shell line asks in cautious mode" }
  event.summary, event.diff_preview = summary, diff
  return event
end

local function asked_exit(id, line, exit)
  local event = asked(id, "shell", line)
  event.reasons, event.exit = { "sudo: it runs with the rights of another user" }, exit
  return event
end

local function answered(id, decision, origin)
  local event = { kind = "approval_resolved", turn_id = T, call_id = id }
  event.decision, event.origin = decision, origin
  return event
end

local OPEN <const> = "The first line\nand the open line goes on."

local MAKE_FAILED <const> = "cc -c a.c\nmake: *** No rule to make target 'all'.  Stop.\n"
  .. "[exit code 2, cwd /home/u/p]\n[it ran in the sandbox: no network but loopback]"

local PIPELINE <const> = "cargo metadata --no-deps --format-version 1 | jq -r '.packages[].name'"
  .. " | sort -u\nls"

local SUDO <const> = "sudo ./scripts/setup.sh --with-a-long-option=value --and-another-one "
  .. "/usr/local/share/things"

local PROSE <const> = ("a line of prose that does not fit into one row, "):rep(4) .. "\n\n\n"
  .. ("x"):rep(130) .. "\n宽字符和普通字 mixed with words " .. ("好"):rep(60) .. "\n"

return {
  id = T,
  call_id = C,
  {
    "simple",
    { { frame = 0 }, started(), { frame = 2 }, text(0, "Hello.\n\nThe test **passes** now.\n"),
      { frame = 3 },
      done({ usage = { input_tokens = 18200, output_tokens = 1100, cached_input_tokens = 16600 } }),
    },
  },
  {
    "prose",
    { started(), text(0, PROSE), done() },
  },
  {
    "calls",
    { started(), text(0, "I look first."),
      call("shell", { command = PIPELINE }),
      output("one\ntwo\n\nthree\nfour " .. ("z"):rep(120)),
      { frame = 14 },
      result({ output = "four\n[exit code 0, cwd /home/u/p]", exit_code = 0 }),
      call("shell", { command = "make" }),
      result({ output = MAKE_FAILED, exit_code = 2, is_error = true }),
      call("read_file", { path = "/home/u/p/src/a.lua" }),
      result({ output = "..." }),
      call("edit", { path = "/home/u/p/src/a.lua" }),
      result({ output = "Success.", diff = DIFF, changes = {
        files = { { path = "src/a.lua", kind = "modified", added = 1, removed = 1 } },
        added = 1, removed = 1,
      } }),
      call("shell", { command = "touch x" }),
      result({ output = "", exit_code = 0, changes = {
        files = {
          { path = "src/a.rs", kind = "modified", added = 3, removed = 1 },
          { path = "old.rs", kind = "deleted", removed = 9 },
          { path = "notes.md", kind = "added", added = 5 },
          { path = "pic.png", kind = "added", binary = true },
        },
        more = 1, added = 8, removed = 10,
      } }),
      call("shell", { command = "true" }),
      result({ is_error = true, sandbox = { setup_error = "no user namespaces" } }),
      done({ undo = { available = true }, changes = {
        files = {
          { path = "a", kind = "modified" }, { path = "b", kind = "added" },
          { path = "c", kind = "added" },
        },
        added = 24, removed = 7,
      } }),
    },
  },
  {
    "question",
    { started(),
      asked(C, "shell", SUDO),
      { frame = 5 },
      answered(C, "allow", "cli"),
      call("shell", { command = "sudo ./scripts/setup.sh" }),
      { frame = 6 },
      result({ output = "", exit_code = 0 }),
      asked("x", "edit", "edit /home/u/p/src/a.lua", DIFF),
      { frame = 7 },
      answered("x", "deny", "phone"),
      done({
        kind = "turn_interrupted",
        context = { tokens = 89000, limit = 206000, window = 272000 },
      }),
    },
  },
  {
    "exits",
    { started(),
      { kind = "exit_requested", turn_id = T, call_id = C, kinds = { "privilege" }, record = {} },
      asked_exit(C, SUDO, {
        kinds = { "privilege" }, launch = { kind = "unsandboxed" }, user_only = true,
        programs = { { word = "sudo", resolved = "/usr/bin/sudo" }, { word = "cd", builtin = true },
          { word = "./scripts/setup.sh", resolved = "/home/u/p/scripts/setup.sh",
            untrusted = "in a write root, it changed in this turn" }, { word = "no\27[2Jsuch" } },
        facts = { "only you can allow this" }, model_reason = "set it up\nplease \27[31m",
        judged = { verdict = "ask_user", rationale = "not asked for" },
      }),
      { frame = 5 },
      answered(C, "allow", "cli"),
      { kind = "exit_judged", turn_id = T, call_id = C, judge = "user", verdict = "allow" },
      call("shell", { command = "sudo ./scripts/setup.sh" }),
      result({ output = "", exit_code = 0 }),
      asked_exit("x", "touch ~/notes/a", {
        kinds = { "write", "host" }, launch = { kind = "contained" }, facts = { 3, {}, "a fact" },
        grants = { { kind = "write", path = "/home/u/notes/a" }, { kind = "write" }, "bad",
          { kind = "bus", bus = "session" }, { kind = "open_network" }, { kind = "later" } },
      }),
      { frame = 6 },
      { kind = "approval_expired", turn_id = T, call_id = "x" },
      { kind = "exit_judged", turn_id = T, call_id = "y", judge = "floor", verdict = "deny" },
      done(),
    },
  },
  {
    "surface",
    { started(),
      call("shell", { command = "git init -q sub; make" }),
      result({ output = "", exit_code = 0 }),
      { kind = "sandbox_surface_changed", turn_id = T, call_id = C, changes = {
        { path = "/home/u/p/.git/objects/info/alternates", rule = "alternates_changed" },
        { path = "/home/u/p/a\27[2J\nb/.git/config", rule = "config_code_key", quarantined = true,
          key = "filter.\n\27[31mx.clean" },
        { path = "/home/u/p/sub/.git/hooks/pre-commit", rule = "hook_planted",
          error = "Permission denied" },
        { path = "/home/u/p/.git/worktrees/a/commondir", rule = "worktree_commondir_elsewhere",
          quarantined = true, restored = true },
        { path = "/home/u/p/.git/worktrees/b/gitdir", rule = "worktree_gitdir_elsewhere",
          restored = true },
        { path = "/home/u/p/.git/worktrees/c/commondir", rule = "worktree_commondir_elsewhere",
          quarantined = true, error = "File exists" },
      }, quarantined = { { from = "/home/u/p/x", to = "/home/u/.local/q/k1/1-config" } } },
      { kind = "surface_question_requested", turn_id = T, call_id = C, question_id = "q1",
        changes = { { path = "/home/u/p/a\27[2J\nb/.git/config", key = "core.fsmonitor" },
          { path = "/home/u/p/.git/commondir", rule = "commondir_in_main_git_dir" } } },
      { frame = 5 },
      { kind = "surface_question_answered", turn_id = T, question_id = "q1" },
      { kind = "surface_question_requested", turn_id = T, call_id = C, question_id = "q2",
        changes = { { path = "/home/u/p/.git/commondir", rule = "commondir_in_main_git_dir",
          restored = true } } },
      { frame = 6 },
      { kind = "surface_question_answered", turn_id = T, question_id = "q2", keep = true,
        origin = "cli" },
      { kind = "sandbox_surface_changed", turn_id = T, call_id = C, changes = {
        { path = "/home/u/p/.git/commondir", rule = "not_put_back", quarantined = true,
          error = "File exists" },
      } },
      { kind = "turn_surface_report", turn_id = T, files = {
        { path = "build.rs" }, { path = "package.json", detail = "scripts" },
        { path = "sub/.git/config", detail = "core.fsmonitor" }, { path = "/home/u/x\27.mk" },
      } },
      done(),
    },
  },
  {
    "hostile",
    { started(),
      text(0, "before\27[2J\27]0;title\7after\r\nbidi \u{202E}evil\u{202C} end\ttab\n"),
      call("shell", { command = "printf '\27[31m'\r\necho \8\8\8" }),
      output("\27[31mred\27[0m\rover"),
      { frame = 1 },
      result({ output = "\27]52;c;AAAA\7", is_error = true }),
      asked("x", "shell", "rm \27[1A\27[2Kls"),
      { frame = 2 },
      done({ kind = "turn_failed", error = { code = "internal", message = "x" } }),
    },
  },
  {
    "drafts",
    { { frame = 0 }, started(),
      { draft = { kind = "reasoning", offset = 0, delta = "..", title = "Reading the code" } },
      { frame = 21 },
      { draft = { kind = "text", index = 0, offset = 0, delta = OPEN:sub(1, 29) } },
      { frame = 22 },
      { draft = { kind = "text", index = 0, offset = 99, delta = "lost" } },
      updated(0, 0, OPEN:sub(1, -2)),
      { frame = 23 },
      { draft = { kind = "tool_input", call = 0, tool = "write_file", bytes = 3277 } },
      { frame = 24 },
      { draft = { kind = "context", tokens = 120000, limit = 206000, window = 272000 } },
      { frame = 50 },
      text(0, OPEN), done(),
    },
  },
}
