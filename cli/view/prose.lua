-- Streamed reply text as rows: what is finished is committed, the rest stays live.
-- Owns: the cut between both in bytes. Must not know: events, the terminal, markdown.
-- Pure; runs in `efr`. How the text arrived in pieces never changes what is committed.

local markdown = require "efr.cli.render.markdown"

local M = {}

local LIVE_MAX <const> = 16384 -- bytes of an open line that are drawn, from its end

local Prose = {}
Prose.__index = Prose

--- @param ctx {hyperlinks: boolean?, ticks: boolean?} of efr.cli.view_context
function M.new(ctx)
  return setmetatable({
    document = markdown.new({ hyperlinks = ctx.hyperlinks or false, ticks = ctx.ticks or false }),
    rest = "", -- the line that is not whole
  }, Prose)
end

--- The length of a text without an incomplete UTF-8 sequence at its end.
function M.whole_length(s)
  local tail = s:sub(-4):match("[\xC0-\xFF][\x80-\xBF]*$")
  if not tail then
    return #s
  end
  local lead = tail:byte()
  local need = lead >= 0xF0 and 4 or lead >= 0xE0 and 3 or 2
  return #tail < need and #s - #tail or #s
end

--- Reads what is new in a prose block.
--- @return table[] rows to commit
function Prose:feed(block, cols)
  local out = self.document:feed(block.text, block.done, cols)
  local from = math.max(self.document.pos + 1, #block.text - LIVE_MAX)
  self.rest = block.text:sub(from, M.whole_length(block.text))
  return out
end

--- Rows of what is not finished at the current width.
function Prose:live_rows(cols)
  return self.document:open_rows(self.rest, cols)
end

return M
