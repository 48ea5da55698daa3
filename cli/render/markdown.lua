-- Markdown as rows, while it arrives: what is finished is committed, the rest can be shown.
-- Owns: the blocks (CommonMark 0.31 as far as replies use it, GitHub's tables and tasks), when a
-- block is finished, how it looks. Must not know: events, the terminal, colours. Pure.
--
-- Policy: the reader takes whole lines, one after the other. What it commits depends on the lines
-- alone, so how the text arrived in pieces cannot change it. A paragraph is committed at its end,
-- but its lines before the last as soon as there are more than three: the last may become the
-- header of a table or of a section. Code comes line by line, a table when it is whole. Quotes and
-- list items hold a reader of their own, so these rules hold inside them as well.

local inline = require "efr.cli.render.inline"
local leaves = require "efr.cli.render.leaves"
local rows = require "efr.cli.view.rows"
local spans = require "efr.cli.render.spans"
local syntax = require "efr.cli.render.syntax"

local M = {}

local DEPTH_MAX <const> = 12 -- quotes and lists deeper than this are text
local BULLETS <const> = { "•", "◦", "▪" }
local NARROW <const> = 12 -- columns that a block keeps, however deep it lies

--- @class efr.cli.render_context
--- @field hyperlinks boolean the terminal shows links
--- @field ticks boolean inline code keeps its backticks (there are no colours)

local Reader = {}
Reader.__index = Reader

-- opts: context, depth, lists (how many lists deep), inner (inside a quote or item), role, look
local function new_reader(opts)
  return setmetatable({
    opts = opts, open = nil, blank = false, any = false, last = nil,
  }, Reader)
end

-- What a reader changes in place, and so a copy of it must not share.
local CHANGED <const> = { open = true, reader = true, lines = true, body = true, painter = true }

-- A copy of a reader, for a look at what is not finished.
local function copy(value)
  local out = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    out[key] = CHANGED[key] and type(inner) == "table" and copy(inner) or inner
  end
  return out
end

local function inner(self, more)
  local opts = {}
  for key, value in pairs(self.opts) do
    opts[key] = value
  end
  opts.depth, opts.inner = opts.depth + 1, true
  for key, value in pairs(more) do
    opts[key] = value
  end
  return new_reader(opts)
end

-- Puts rows out, after a blank row where one belongs.
function Reader:put(out, list, kind)
  if #list == 0 then
    return
  end
  local gap = self.blank or kind == "heading" and not self.opts.inner
  if self.any and gap then
    out[#out + 1] = {}
  end
  self.any, self.blank, self.last = true, false, kind
  rows.extend(out, list)
end

function Reader:spans(s, role, look)
  local context = self.opts.context
  return inline.spans(s, {
    hyperlinks = context.hyperlinks, ticks = context.ticks, role = role or self.opts.role,
    look = look or self.opts.look,
  })
end

--- The columns that a block has, however deep it lies.
function Reader:room(cols) -- luacheck: no self
  return math.max(cols, NARROW)
end

-- Top-level prose is one row a line, which the terminal wraps; inside it is wrapped here.
function Reader:fit(list, cols)
  if not self.opts.inner then
    return list
  end
  local out = {}
  for _, row in ipairs(list) do
    rows.extend(out, spans.wrap(row, self:room(cols)))
  end
  return out
end

-- ---- what is open ----

local blocks = {}
for kind, block in pairs(leaves.blocks) do
  blocks[kind] = block
end

-- ---- quotes and lists: a reader inside ----

-- Rows of the inner reader with what stands before them.
local function put_inner(self, out, list, kind)
  local open = self.open
  for i, row in ipairs(list) do
    if #row == 0 and not open.bar then
      list[i] = {}
    else
      local lead = not open.begun and open.first or open.lead
      list[i] = rows.prefix({ row }, lead, lead)[1]
      open.begun = true
    end
  end
  self:put(out, list, kind)
end

local function inner_line(self, line, out, cols, kind)
  local list = {}
  self.open.reader:line(line, list, cols - self.open.cols)
  put_inner(self, out, list, kind)
end

local function inner_finish(self, out, cols, kind)
  local list = {}
  self.open.reader:finish(list, cols - self.open.cols)
  if #list == 0 and not self.open.begun and self.open.first then
    list[1] = { { "" } } -- an item without text still shows its mark
  end
  put_inner(self, out, list, kind)
end

-- The line goes on with a paragraph inside, without the marks of what it lies in.
local function is_lazy(self, line)
  local deepest = self.open.reader
  while deepest.open and deepest.open.reader do
    deepest = deepest.open.reader
  end
  return deepest.open ~= nil and deepest.open.kind == "paragraph" and not syntax.is_blank(line)
    and not self:interrupts(line) and not syntax.underline(line)
end

blocks.quote = {}

function blocks.quote.line(self, line, out, cols)
  local text = syntax.quoted(line)
  if not text and not is_lazy(self, line) then
    return false
  end
  inner_line(self, text or line, out, cols, "quote")
  return true
end

function blocks.quote.finish(self, out, cols)
  inner_finish(self, out, cols, "quote")
end

blocks.item = {}

function blocks.item.line(self, line, out, cols)
  local open = self.open
  if syntax.is_blank(line) then
    inner_line(self, "", out, cols, "item")
    open.blank = true
    return true
  end
  local indent = syntax.indent(line)
  if indent < open.width and (open.blank or syntax.item(line) or not is_lazy(self, line)) then
    return false
  end
  open.blank = false
  inner_line(self, line:sub(math.min(indent, open.width) + 1), out, cols, "item")
  return true
end

function blocks.item.finish(self, out, cols)
  inner_finish(self, out, cols, "item")
  self.blank = self.open.blank or self.blank
end

-- ---- what a line begins ----

local function start_quote(self, line, out, cols)
  local text = syntax.quoted(line)
  if not text or self.opts.depth >= DEPTH_MAX then
    return false
  end
  local bar = { { "│ ", "muted" } }
  self.open = {
    kind = "quote", bar = true, lead = bar, first = nil, cols = 2, begun = true,
    reader = inner(self, { role = "quote" }),
  }
  inner_line(self, text, out, cols, "quote")
  return true
end

local function marker_of(self, item)
  local mark = item.number and item.number .. item.marker
    or BULLETS[math.min(self.opts.lists + 1, #BULLETS)]
  local row = { { mark .. " ", self.opts.role } }
  local box, rest = item.text:match("^%[([ xX])%] (.*)$")
  if box then
    row[2] = box == " " and { "[ ] ", "muted" } or { "[x] ", "success" }
    item.text = rest
  end
  return row
end

local function start_item(self, line, out, cols)
  local item = syntax.indent(line) < 4 and syntax.item(line)
  if not item or self.opts.depth >= DEPTH_MAX then
    return false
  end
  local first = marker_of(self, item)
  local width = rows.row_width({ first[1] })
  self.open = {
    kind = "item", first = first, lead = { { (" "):rep(width) } }, cols = width,
    width = item.width, reader = inner(self, { lists = self.opts.lists + 1 }),
  }
  if first[2] then
    self.open.lead = { { (" "):rep(width + 4) } }
    self.open.cols = width + 4
  end
  inner_line(self, item.text, out, cols, "item")
  return true
end

local STARTS <const> = {
  leaves.start_line, leaves.start_fence, start_quote, start_item, leaves.start_verbatim,
}

--- Whether a line ends a paragraph or table before it.
function Reader:interrupts(line)
  if syntax.heading(line) or syntax.is_rule(line) or syntax.fence(line) then
    return true
  elseif self.opts.depth < DEPTH_MAX and syntax.quoted(line) then
    return true
  end
  local item = syntax.indent(line) < 4 and self.opts.depth < DEPTH_MAX and syntax.item(line)
  -- Only 1. begins a numbered list in the middle of a text: a line may begin with a year.
  return item and item.text ~= "" and (not item.number or item.number == 1 or self.opts.lists > 0)
    or false
end

--- Reads one line and puts out the rows that are finished.
--- @param line string  safe text, no tab, no newline
--- @param out table[]
--- @param cols integer
function Reader:line(line, out, cols)
  if self.open then
    if blocks[self.open.kind].line(self, line, out, cols) then
      return
    end
    self:finish(out, cols)
  end
  if syntax.is_blank(line) then
    self.blank = true
    return
  end
  for _, start in ipairs(STARTS) do
    if start(self, line, out, cols) then
      return
    end
  end
  self.open = { kind = "paragraph", lines = { line } }
end

--- Ends what is open.
function Reader:finish(out, cols)
  if self.open then
    blocks[self.open.kind].finish(self, out, cols)
    self.open = nil
  end
end

-- ---- the text as it arrives ----

local Document = {}
Document.__index = Document

--- @param context efr.cli.render_context
function M.new(context)
  return setmetatable({
    reader = new_reader({ context = context, depth = 0, lists = 0 }),
    pos = 0, -- bytes of the text that were read as lines
  }, Document)
end

--- Reads the lines that are whole.
--- @param text string  all of the text so far
--- @param done boolean  nothing more comes
--- @param cols integer
--- @return table[] rows that are finished
function Document:feed(text, done, cols)
  local out = {}
  while true do
    local newline = text:find("\n", self.pos + 1, true)
    if not newline then
      break
    end
    self.reader:line(rows.safe(text:sub(self.pos + 1, newline - 1):gsub("\r$", "")), out, cols)
    self.pos = newline
  end
  if done then
    if self.pos < #text then
      self.reader:line(rows.safe(text:sub(self.pos + 1)), out, cols)
      self.pos = #text
    end
    self.reader:finish(out, cols)
  end
  return out
end

--- The rows of what is not finished, with the line that is not whole.
--- @param rest string  that line; a long one may be its end only
--- @param cols integer
--- @return table[] rows  none wider than the screen
function Document:open_rows(rest, cols)
  local reader, list, out = copy(self.reader), {}, {}
  if rest ~= "" then
    reader:line(rows.safe(rest), list, cols)
  end
  reader:finish(list, cols)
  for _, row in ipairs(list) do
    rows.extend(out, spans.fold(row, cols))
  end
  return out
end

return M
