-- The view without a terminal: the reply on stdout, everything else on stderr.
-- Owns: ux.md 6.14. Must not know: the wire, descriptors (they arrive as functions).
-- Runs in `efr`.

local block = require "efr.cli.view.block"
local input = require "efr.cli.view.input"
local prose = require "efr.cli.view.prose"
local question = require "efr.cli.view.question"
local rows = require "efr.cli.view.rows"
local text = require "efr.text"
local transcript = require "efr.cli.view.transcript"

local M = {}

local WIDE <const> = 1 << 30

local Plain = {}
Plain.__index = Plain

--- @class efr.cli.plain_ports
--- @field out fun(bytes: string)
--- @field err fun(bytes: string)
--- @field home string?
--- @field diff_lines integer
--- @field turn_summary boolean
--- @field groups table<string, string[]>? of view.groups

--- @param turn efr.cli.turn
--- @param ports efr.cli.plain_ports
function M.new(turn, ports)
  return setmetatable({
    turn = turn,
    ports = ports,
    next = 1,
    written = 0, -- bytes of the open prose block that were written
    ended_line = true, -- stdout stands at the start of a line
    replied = false, -- something was written to stdout
  }, Plain)
end

local function safe_reply(s)
  return (s:gsub("[^\n\t]+", text.printable))
end

function Plain:_out(s)
  if s ~= "" then
    self.ports.out(safe_reply(s))
    self.ended_line = s:sub(-1) == "\n"
    self.replied = true
  end
end

function Plain:_err(list)
  for _, row in ipairs(list) do
    self.ports.err(rows.plain(row) .. "\n")
  end
end

local show = {}

function show.prose(self, item)
  local stop = item.done and #item.text or prose.whole_length(item.text)
  if self.written == 0 and stop > 0 and self.replied then
    self:_out(self.ended_line and "\n" or "\n\n")
  end
  self:_out(item.text:sub(self.written + 1, stop))
  self.written = math.max(stop, self.written)
  if not item.done then
    return false
  end
  self.written = 0
  if not self.ended_line then
    self:_out("\n")
  end
  return true
end

function show.note(self, item, ctx)
  if not item.shown then
    item.shown = true
    self:_err(block.note_rows(item, ctx))
  end
  return true
end

function show.exit(self, item, ctx)
  self:_err(transcript.exit_rows(item, ctx))
  return true
end

function show.call(self, item, ctx)
  if item.state ~= "done" then
    return false
  end
  self:_err(block.finished_rows(item, ctx))
  return true
end

function show.question(self, item, ctx)
  if not item.shown then
    item.shown = true
    local card, keys = question.card(item, ctx)
    self:_err(card)
    self:_err({ keys })
  end
  if (item.confirms or false) ~= (item.confirm_shown or false) then
    item.confirm_shown = item.confirms
    self:_err({ select(2, question.card(item, ctx)) })
  end
  if item.state == "open" then
    return false
  end
  self:_err({ question.answer_row(item) })
  return true
end

-- What is typed stands on a line of its own, which is written anew with each key.
local function show_typed(self, item)
  local typed = input.is_shown(item) and rows.safe(item.typed or "") or ""
  if typed ~= (item.written or "") then
    item.written = typed
    self.ports.err("\r\27[K> " .. typed)
  end
end

function show.input(self, item, ctx)
  local is_open = item.state == "open" or item.state == "sending"
  if is_open and not item.shown then
    item.shown = true
    local lines = input.rows(item, ctx)
    self.ports.err(input.prompt(item.prompt) .. "\n")
    self:_err({ lines[#lines - 1] })
    self.ports.err("> ")
  end
  if item.shown and is_open then
    show_typed(self, item)
  elseif item.shown and not item.closed then
    item.closed = true
    self.ports.err("\n")
    self:_err(input.ended_rows(item))
  end
  return not is_open
end

-- A command that waits does so before its call has ended, and an urgent note may be about a call
-- that does not end.
local function show_urgent(self, ctx)
  for i = self.next, #self.turn.blocks do
    local item = self.turn.blocks[i]
    if item.kind == "input" or item.urgent then
      show[item.kind](self, item, ctx)
    end
  end
end

--- Writes what is new.
function Plain:update(now_ms)
  local ctx = {
    cols = WIDE,
    now_ms = now_ms,
    home = self.ports.home,
    diff_lines = self.ports.diff_lines,
    turn_summary = self.ports.turn_summary,
    groups = self.ports.groups,
    answers = self.turn.answers,
  }
  while self.next <= #self.turn.blocks do
    local item = self.turn.blocks[self.next]
    if not show[item.kind](self, item, ctx) then
      return show_urgent(self, ctx)
    end
    self.next = self.next + 1
  end
  if self.turn.phase == "ended" and not self.closed then
    self.closed = true
    self:_err(transcript.end_rows(self.turn, ctx))
  end
end

return M
