-- Question cards and their answer lines as rows.
-- Owns: ux.md 6.7. Must not know: keys, the terminal, the wire. Pure; runs in `efr`.

local changes = require "efr.cli.view.changes"
local rows = require "efr.cli.view.rows"

local M = {}

local BAR <const> = { "│ ", "muted" }

local TITLE <const> = {
  shell = "allow this command",
  write_file = "allow this write",
  read_file = "allow this read",
  edit = "allow this edit",
  apply_patch = "allow this patch",
  settings = "allow this change of the settings",
}

-- How a summary starts when the event does not name its tool.
local SUMMARY_TITLE <const> = {
  { "^%$ ", "shell" }, { "^read ", "read_file" }, { "^write ", "write_file" }, { "^edit ", "edit" },
}

local function title(block)
  if block.exit then
    return "allow outside the sandbox"
  end
  local tool = block.tool
  for _, rule in ipairs(SUMMARY_TITLE) do
    if not tool and block.summary:find(rule[1]) then
      tool = rule[2]
    end
  end
  return TITLE[tool] or "allow this call"
end

-- The summary: what runs in the code role, lines that explain it muted.
local function summary_rows(block, cols)
  local out = {}
  for _, line in ipairs(rows.lines(block.summary)) do
    local muted = line:find("^why: ") or line:find("^efr: ")
    local safe = rows.safe((line:gsub("^%$ ", "")))
    if muted then
      for _, row in ipairs(rows.wrap_indented(safe, cols - 2, 2)) do
        out[#out + 1] = { BAR, { row, "muted" } }
      end
    else
      rows.extend(out, rows.prefix(rows.wrap_code(safe, cols - 2, "code"), { BAR }, { BAR }))
    end
  end
  return out
end

local function text_rows(out, words, cols)
  for _, row in ipairs(rows.wrap_indented(rows.safe(words:gsub("\n", " ")), cols - 2, 2)) do
    out[#out + 1] = { BAR, { row, "muted" } }
  end
end

local function reason_text(reason)
  return type(reason) == "table" and (reason.text or reason.reason) or reason
end

local function keys_row(answers)
  if not answers then
    return { BAR, { "waiting for another client to answer", "muted" } }
  end
  return {
    BAR, { "y", "bold" }, { " allow · ", "muted" }, { "n", "bold" }, { " deny", "muted" },
  }
end

--- Rows of an open question.
--- @param ctx {cols: integer, diff_lines: integer, answers: boolean}
--- @return table[] rows, table keys the last row, which stays live when the card is too tall
function M.card(block, ctx)
  local out = { { { "? " .. title(block), "warning" } } }
  rows.extend(out, summary_rows(block, ctx.cols))
  for _, reason in ipairs(block.reasons or {}) do
    local words = reason_text(reason)
    if type(words) == "string" and words ~= "" then
      text_rows(out, "why: " .. words, ctx.cols)
    end
  end
  local exit = block.exit or {}
  for _, fact in ipairs(exit.facts or {}) do
    text_rows(out, "efr: " .. fact, ctx.cols)
  end
  if exit.model_reason then
    text_rows(out, ('the model says: "%s"'):format(exit.model_reason), ctx.cols)
  end
  if block.diff_preview and ctx.diff_lines > 0 then
    local opts = { cols = ctx.cols, limit = ctx.diff_lines, lead = BAR }
    rows.extend(out, changes.diff_rows(block.diff_preview, opts))
  end
  return out, keys_row(ctx.answers)
end

local ANSWER <const> = {
  allowed = { "✓ ", "success", "allowed" },
  denied = { "✗ ", "error", "denied" },
  expired = { "✗ ", "error", "the approval expired" },
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
