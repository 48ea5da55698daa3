-- Blocks of markdown without blocks inside: paragraphs, headings, code, tables, HTML.
-- Owns: how each reads its lines and looks. Must not know: quotes and lists, the text as it
-- arrives, colours. Pure.
--
-- A block has line(reader, line, out, cols) -> whether the line was its own, and finish(reader,
-- out, cols). reader.open is what is open; see markdown.lua.

local code = require "efr.cli.render.code"
local rows = require "efr.cli.view.rows"
local syntax = require "efr.cli.render.syntax"
local tables = require "efr.cli.render.table"

local M = { blocks = { paragraph = {} } }

local LINES_KEPT <const> = 3
local RULE_COLS <const> = 40

local HEADING <const> = {
  { "heading", { bold = true, underline = true } }, { "heading", { bold = true } },
  { nil, { bold = true } }, { nil, { bold = true, italic = true } },
}

-- Splits spans at the line ends inside.
local function split(row)
  local out = { {} }
  for _, span in ipairs(row) do
    if span[1] == "\n" then
      out[#out + 1] = {}
    else
      table.insert(out[#out], span)
    end
  end
  return out
end

-- The first `count` lines as one text. Blanks or a backslash before a further line are a hard
-- break; line ends are kept anyway.
local function join(lines, count)
  local out = {}
  for i = 1, count do
    local line = lines[i]:gsub("^ +", "")
    out[i] = (lines[i + 1] and line:gsub("\\$", "") or line):gsub(" +$", "")
  end
  return table.concat(out, "\n")
end

-- Commits the lines of a paragraph but the last `keep`.
local function commit_lines(self, out, cols, keep)
  local open = self.open
  open.begun = true
  local list = split(self:spans(join(open.lines, #open.lines - keep)))
  self:put(out, self:fit(list, cols), "paragraph")
  open.lines = table.move(open.lines, #open.lines - keep + 1, #open.lines, 1, {})
end

local function heading_rows(self, level, text, cols)
  local kind = HEADING[math.min(level, 4)]
  return self:fit(split(self:spans(text, kind[1], kind[2])), cols)
end

-- The last line of the paragraph and this one begin a table.
local function start_table(self, line, out, cols)
  local open = self.open
  local last = open.lines[#open.lines]
  local aligns = last:find("|", 1, true) and syntax.delimiters(line)
  local header = aligns and syntax.cells(last)
  if not header or #header ~= #aligns then
    return false
  end
  if #open.lines > 1 then
    commit_lines(self, out, cols, 1)
  end
  self.blank = self.blank or open.begun
  self.open = { kind = "table", header = header, aligns = aligns, body = {} }
  return true
end

function M.blocks.paragraph.line(self, line, out, cols)
  local open = self.open
  if syntax.is_blank(line) then
    return false
  elseif start_table(self, line, out, cols) then
    return true
  end
  local level = syntax.underline(line)
  if level then
    local text = join(open.lines, #open.lines)
    self.open = nil
    self:put(out, heading_rows(self, level, text, cols), "heading")
    return true
  elseif self:interrupts(line) then
    return false
  end
  open.lines[#open.lines + 1] = line
  if #open.lines > LINES_KEPT then
    commit_lines(self, out, cols, 1)
  end
  return true
end

function M.blocks.paragraph.finish(self, out, cols)
  commit_lines(self, out, cols, 0)
end

M.blocks.fence = {}

function M.blocks.fence.line(self, line, out)
  local open = self.open
  if syntax.closes(open.fence, line) then
    self.open = nil
    return true
  end
  local blanks = math.min(syntax.indent(line), open.fence.indent)
  local row = open.painter:line(line:sub(blanks + 1))
  self:put(out, { row }, "code")
  self.blank = false
  return true
end

function M.blocks.fence.finish() end

M.blocks.indented = {}

function M.blocks.indented.line(self, line, out)
  if syntax.is_blank(line) then
    self.blank = true
    return true
  elseif syntax.indent(line) < 4 then
    return false
  end
  self:put(out, { { { rows.safe(line:sub(5)), "code" } } }, "code")
  return true
end

function M.blocks.indented.finish() end

M.blocks.html = {}

function M.blocks.html.line(self, line, out)
  if syntax.is_blank(line) then
    return false
  end
  self:put(out, { { { line, "muted" } } }, "html")
  return true
end

function M.blocks.html.finish() end

M.blocks.table = {}

function M.blocks.table.line(self, line)
  if syntax.is_blank(line) or self:interrupts(line) then
    return false
  end
  table.insert(self.open.body, syntax.cells(line))
  return true
end

local function cell_spans(self, cells, count)
  local out = {}
  for i = 1, count do
    out[i] = self:spans(cells[i] or "")
  end
  return out
end

function M.blocks.table.finish(self, out, cols)
  local open, body = self.open, {}
  for i, cells in ipairs(open.body) do
    body[i] = cell_spans(self, cells, #open.aligns)
  end
  local header = cell_spans(self, open.header, #open.aligns)
  self:put(out, tables.rows(header, body, open.aligns, self:room(cols)), "table")
end

-- ---- what a line begins ----

--- A fence begins.
function M.start_fence(self, line, out)
  local fence = syntax.fence(line)
  if not fence then
    return false
  end
  local language, label = code.info(fence.info)
  self.open = { kind = "fence", fence = fence, painter = code.painter(language) }
  if label then
    self:put(out, { { { label, "muted" } } }, "code")
  end
  return true
end

--- A block of one line: a heading or a rule.
function M.start_line(self, line, out, cols)
  local level, text = syntax.heading(line)
  if level then
    self:put(out, heading_rows(self, level, text, cols), "heading")
    return true
  elseif syntax.is_rule(line) then
    local width = math.max(1, math.min(RULE_COLS, cols))
    self:put(out, { { { ("─"):rep(width), "muted" } } }, "rule")
    return true
  end
  return false
end

--- Indented code, or HTML.
function M.start_verbatim(self, line, out, cols)
  local kind
  if syntax.indent(line) >= 4 then
    kind = "indented"
  elseif syntax.is_html(line) then
    kind = "html"
  else
    return false
  end
  self.open = { kind = kind }
  return M.blocks[kind].line(self, line, out, cols)
end

return M
