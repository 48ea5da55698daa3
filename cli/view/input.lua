-- A command that waits for input, as rows.
-- Owns: ux.md 6.12. Must not know: keys, the terminal, the wire. Pure; runs in `efr`.

local rows = require "efr.cli.view.rows"

local M = {}

local HOW <const> = {
  hidden = "type the answer and press Enter; it is not shown, and the agent sees it only if the "
    .. "program prints it",
  visible = "type the answer and press Enter; the agent sees it if the program shows it",
  secret = "this looks like a password prompt behind another program: your typing is not shown "
    .. "here, but the agent may see it",
  manual = "type the input and press Enter, or Ctrl+\\ to cancel; it is not shown here, but the "
    .. "agent sees it if the program shows it",
}

M.OFFER = "no output for 10 s; press Ctrl+\\ to type an input for the command" ---@type string
M.NOT_SENT = "the input was not sent" ---@type string
M.REFUSED = "the command no longer waits for that input; nothing was sent" ---@type string
---@type string
M.SANDBOX = "sandbox: the command asked for a secret; efr does not type secrets into the sandbox"

--- What is said where nobody can type.
--- @param kind "hidden"|"visible"
function M.unasked(kind)
  local what = kind == "hidden" and "hidden input" or "input"
  return ("the command waits for %s that efr cannot ask for here"):format(what)
end

--- The last line of an output, for where it does not stand above.
--- @param tail string?
--- @return string
function M.prompt(tail)
  return rows.safe(((tail or ""):gsub("%s+$", ""):match("[^\n]*$")))
end

--- Whether what is typed is shown.
--- @param item table a block of kind input
function M.is_shown(item)
  return item.wait == "visible" and not item.looks_secret
end

local function how(item)
  return HOW[item.looks_secret and item.wait == "visible" and "secret" or item.wait]
end

--- Rows of a wait that can be answered here.
--- @param item table a block of kind input
--- @param ctx {cols: integer}
function M.rows(item, ctx)
  local out = {}
  if item.late then
    out[1] = { { rows.cut(M.prompt(item.prompt), ctx.cols), "code" } }
  end
  for _, row in ipairs(rows.wrap_indented(how(item), ctx.cols, 2)) do
    out[#out + 1] = { { row, "muted" } }
  end
  -- The end of a long line is where the cursor is.
  local typed = M.is_shown(item) and rows.safe(item.typed or "") or ""
  local room = math.max(ctx.cols - 3, 1)
  while rows.width(typed) > room do
    typed = typed:sub(utf8.offset(typed, 2) or #typed + 1)
  end
  out[#out + 1] = { { "> ", "accent" }, { typed }, { "▏", "muted" } }
  return out
end

--- Rows that stay when it is over.
function M.ended_rows(item)
  if item.state == "sent" and item.wait == "visible" then
    return { { { "answer sent", "muted" } } }
  elseif item.state == "refused" then
    return { { { M.REFUSED, "muted" } } }
  elseif item.state == "cancelled" then
    return { { { M.NOT_SENT, "muted" } } }
  end
  return {}
end

return M
