-- Question cards and their answer lines as rows.
-- Owns: ux.md 6.7. Must not know: keys, the terminal, the wire. Pure; runs in `efr`.

local changes = require "efr.cli.view.changes"
local exit_view = require "efr.cli.view.exit"
local rows = require "efr.cli.view.rows"
local surface = require "efr.cli.view.surface"

local M = {}

local BAR <const> = { "│ ", "muted" }

local TITLE <const> = {
  shell = "allow this command",
  write_file = "allow this write",
  read_file = "allow this read",
  edit = "allow this edit",
  apply_patch = "allow this patch",
  settings = "allow this change of the settings",
  cache_delete = "delete this in the real cache, too",
}

local SURFACE_TITLE <const> = "keep the git settings that the last command changed"

local function title(block, ctx)
  if block.guard then
    return "delete this?"
  elseif block.question_id then
    return SURFACE_TITLE
  end
  local words = block.exit and exit_view.title(block.exit, ctx.home)
  return words or TITLE[block.tool] or "allow this call"
end

-- What runs, line by line.
local function summary_rows(block, cols)
  local out = {}
  for _, line in ipairs(rows.lines(block.summary)) do
    local code = rows.wrap_code(rows.safe(line), cols - 2, "code")
    rows.extend(out, rows.prefix(code, { BAR }, { BAR }))
  end
  return out
end

local function text_rows(out, words, cols, role)
  for _, row in ipairs(rows.wrap_indented(rows.safe((words:gsub("\n", " "))), cols - 2, 2)) do
    out[#out + 1] = { BAR, { row, role or "muted" } }
  end
end

-- Words of efr's own with the home directory as a person writes it.
local function homely(words, home)
  if not home or home == "/" then
    return words
  end
  return (words:gsub(home:gsub("%W", "%%%0") .. "/", "~/"))
end

-- What efr knows of the exits of a call, below the reasons.
local function exit_rows(out, exit, ctx)
  local programs, untrusted = exit_view.program_rows(exit.programs, ctx.home)
  if programs then
    text_rows(out, programs, ctx.cols)
  end
  for _, words in ipairs(untrusted) do
    text_rows(out, words, ctx.cols, "warning")
  end
  for _, fact in ipairs(type(exit.facts) == "table" and exit.facts or {}) do
    if type(fact) == "string" then
      text_rows(out, "efr: " .. homely(fact, ctx.home), ctx.cols)
    end
  end
  if type(exit.model_reason) == "string" then
    text_rows(out, ('the model says: "%s"'):format(exit.model_reason), ctx.cols)
  end
  local judged = type(exit.judged) == "table" and exit.judged
  if judged then
    local why = type(judged.rationale) == "string" and "; " .. judged.rationale or ""
    text_rows(out, "reviewer: unsure" .. why, ctx.cols)
  end
end

-- A guarded delete: what it takes away, in place of reasons.
local function guard_rows(out, guard, cols)
  for _, target in ipairs(type(guard.deletes) == "table" and guard.deletes or {}) do
    if type(target) == "string" then
      text_rows(out, "deletes: " .. target, cols)
    end
  end
  if guard.undo ~= true then
    text_rows(out, "efr: undo cannot bring this back", cols)
  end
end

--- The rule that `a` saves, in words; nil: none.
function M.rule(block)
  local rule = block.exit and block.exit.always_rule
  return type(rule) == "string" and rule ~= "" and rows.safe(rule) or nil
end

local function keys_row(block, answers, is_short)
  if not answers then
    return { BAR, { "waiting for another client to answer", "muted" } }
  end
  if block.guard then
    local seconds = math.tointeger(block.guard.seconds) or 60
    return {
      BAR, { "y", "bold" }, { " delete · ", "muted" }, { "n", "bold" },
      { (" keep (no in %d s)"):format(seconds), "muted" },
    }
  end
  local rule = M.rule(block)
  if rule and block.confirms then
    local words = is_short and "save this rule? y/n" or ('save rule "%s"? y/n'):format(rule)
    return { BAR, { words, "bold" } }
  end
  local yes, no = " allow · ", " deny"
  if block.question_id then
    yes, no = " keep · ", " leave in quarantine"
  end
  local out = { BAR, { "y", "bold" }, { yes, "muted" }, { "n", "bold" }, { no, "muted" } }
  if rule then
    rows.extend(out, { { " · ", "muted" }, { "a", "bold" },
      { is_short and " always" or " always: " .. rule, "muted" } })
  end
  return out
end

-- What lies in quarantine, a row each.
local function surface_rows(block, ctx)
  local out = {}
  for _, change in ipairs(block.changes) do
    local words = rows.safe(surface.row(change, ctx.home))
    for _, row in ipairs(rows.wrap_indented(words, ctx.cols - 2, 2)) do
      out[#out + 1] = { BAR, { row, "code" } }
    end
  end
  return out
end

--- A question in one line, for a record.
function M.line(block, ctx)
  if not block.question_id then
    return "approval needed: " .. block.summary:gsub("\n+$", ""):gsub("\n", "; ")
  end
  local names = {}
  for i, change in ipairs(block.changes) do
    names[i] = surface.row(change, ctx.home)
  end
  return SURFACE_TITLE .. ": " .. table.concat(names, ", ")
end

-- The keys; a rule that does not fit beside them stands above, whole.
local function rule_row(out, block, ctx)
  local keys = keys_row(block, ctx.answers)
  if not M.rule(block) or not ctx.answers or rows.row_width(keys) <= ctx.cols then
    return keys
  end
  text_rows(out, "rule: " .. M.rule(block), ctx.cols)
  return keys_row(block, true, true)
end

--- Rows of an open question.
--- @param ctx {cols: integer, diff_lines: integer, answers: boolean, home: string?}
--- @return table[] rows, table keys the last row, which stays live when the card is too tall
function M.card(block, ctx)
  local out = {}
  for _, row in ipairs(rows.wrap_indented(rows.safe("? " .. title(block, ctx)), ctx.cols, 2)) do
    out[#out + 1] = { { row, "warning" } }
  end
  if block.question_id then
    return rows.extend(out, surface_rows(block, ctx)), keys_row(block, ctx.answers)
  end
  rows.extend(out, summary_rows(block, ctx.cols))
  if block.guard then
    guard_rows(out, block.guard, ctx.cols)
  end
  if block.exit and exit_view.has_full_rights(block.exit) then
    text_rows(out, exit_view.FULL_RIGHTS, ctx.cols, "warning")
  end
  for _, reason in ipairs(block.reasons or {}) do
    if type(reason) == "string" and reason ~= "" then
      text_rows(out, "why: " .. homely(reason, ctx.home), ctx.cols)
    end
  end
  if block.exit then
    exit_rows(out, block.exit, ctx)
  end
  if block.diff_preview and ctx.diff_lines > 0 then
    local opts = { cols = ctx.cols, limit = ctx.diff_lines, lead = BAR }
    rows.extend(out, changes.diff_rows(block.diff_preview, opts))
  end
  return out, rule_row(out, block, ctx)
end

local ANSWER <const> = {
  allowed = { "✓ ", "success", "allowed" },
  denied = { "✗ ", "error", "denied" },
  expired = { "✗ ", "error", "the approval expired" },
  kept = { "✓ ", "success", "kept" },
  left = { "✗ ", "error", "left in quarantine" },
}

--- The line that takes the card's place after the answer.
function M.answer_row(block)
  local answer = ANSWER[block.state]
  local words = answer[3]
  if block.origin == "phone" then
    words = words .. " from the phone"
  end
  return { { answer[1], answer[2] }, { words, "muted" } }
end

return M
