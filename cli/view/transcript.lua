-- What of a turn stands above, and what is repainted below.
-- Owns: the order of blocks, the blank rows between them, the end of a turn.
-- Must not know: escape sequences, the terminal, the wire. Pure; runs in `efr`.

local block = require "efr.cli.view.block"
local changes = require "efr.cli.view.changes"
local exit_view = require "efr.cli.view.exit"
local home = require "efr.cli.view.home"
local input = require "efr.cli.view.input"
local prose = require "efr.cli.view.prose"
local question = require "efr.cli.view.question"
local rows = require "efr.cli.view.rows"
local status = require "efr.cli.view.status"
local summary = require "efr.cli.view.summary"

local M = {}

--- @class efr.cli.view_context
--- @field cols integer
--- @field lines integer height of the screen
--- @field now_ms number
--- @field tick integer counts tenths of a second
--- @field motion boolean
--- @field diff_lines integer
--- @field turn_summary boolean
--- @field answers boolean questions are answered here
--- @field home string?
--- @field static boolean? a record, not a running turn: no status row
--- @field verbose boolean? with everything that is recorded of exits
--- @field hyperlinks boolean? the terminal shows links
--- @field ticks boolean? inline code keeps its backticks, as there are no colours

local Transcript = {}
Transcript.__index = Transcript

function M.new(turn)
  return setmetatable({ turn = turn, next = 1, last = nil, closed = false }, Transcript)
end

-- Blocks that stand together without a blank row.
local function joined(a, b)
  if a.kind == "exit" or b.kind == "exit" then
    return true
  end
  if a.kind == "note" and b.kind == "note" then
    return true
  end
  local pair = a.kind == "question" and b.kind == "call" or a.kind == "call" and b.kind == "input"
  return pair and a.call_id == b.call_id
end

-- Appends a block's rows, after a blank row where one belongs.
local function put(list, last, item, more)
  if #more == 0 then
    return last
  end
  if last and last ~= item and not joined(last, item) then
    list[#list + 1] = {}
  end
  rows.extend(list, more)
  return item
end

-- A card that is taller than the screen goes up whole; only its keys row stays live.
local function card_rows(self, item, ctx, commit)
  local card, keys = question.card(item, ctx)
  if not item.committed and #card + 1 > ctx.lines - 1 then
    self.last = put(commit, self.last, item, card)
    item.committed = true
  end
  if item.committed then
    return { keys }
  end
  card[#card + 1] = keys
  return card
end

--- The rows of a block about exits: a verdict that no person gave, and in a full record everything.
function M.exit_rows(item, ctx)
  local lines
  if item.request then
    lines = ctx.verbose and exit_view.record_lines(item.request, ctx.home) or {}
  else
    lines = (ctx.verbose or not item.told) and { exit_view.verdict_line(item.verdict) } or {}
  end
  local out = {}
  for _, line in ipairs(lines) do
    rows.extend(out, block.note_rows({ text = line, role = "muted" }, ctx))
  end
  return out
end

-- The committed and live rows of a block, and whether nothing more of it comes.
local show = {}

function show.note(_, item, ctx)
  return block.note_rows(item, ctx), {}, true
end

function show.exit(_, item, ctx)
  return M.exit_rows(item, ctx), {}, true
end

function show.prose(self, item, ctx)
  if not self.writer or self.writer_of ~= item then
    self.writer, self.writer_of = prose.new(ctx), item
  end
  local commit = self.writer:feed(item, ctx.cols)
  return commit, self.writer:live_rows(ctx.cols), item.done
end

function show.call(self, item, ctx)
  if item.state == "done" then
    return block.finished_rows(item, ctx), {}, true
  end
  return {}, block.running_rows(item, ctx, self.turn.context), false
end

function show.question(self, item, ctx, commit)
  if ctx.static then
    local out = block.note_rows({ text = question.line(item, ctx), role = "muted" }, ctx)
    if item.state ~= "open" then
      out[#out + 1] = question.answer_row(item)
    end
    return out, {}, true
  end
  if item.state == "open" then
    return {}, card_rows(self, item, ctx, commit), false
  end
  return { question.answer_row(item) }, {}, true
end

function show.input(_, item, ctx)
  if item.state == "open" or item.state == "sending" then
    return {}, input.rows(item, ctx), false
  end
  return input.ended_rows(item), {}, true
end

local ENDED_NOTE <const> = {
  cancelled = "the turn was cancelled; efrd restarted",
  withdrawn = "the prompt was taken back before it ran",
}

-- A row for each repository whose references moved; with no files it tells of undo itself.
local function refs_rows(turn, has_files, ctx)
  local out = {}
  local undo = type(turn.undo) == "table" and turn.undo or {}
  for _, item in ipairs(type(undo.refs) == "table" and undo.refs or {}) do
    local count = tonumber(item.count) or 0
    local text = ("moved %d ref%s in "):format(count, count == 1 and "" or "s")
    out[#out + 1] = { { text .. changes.path(tostring(item.root), ctx.home), "muted" } }
    if not has_files and undo.available then
      table.insert(out[#out], { "; efr undo reverts this turn", "muted" })
    end
  end
  return out
end

--- The muted rows at the end of a turn.
function M.end_rows(turn, ctx)
  local out = {}
  local totals = changes.totals_row(turn.changes, ctx.groups)
  if totals then
    if turn.undo and turn.undo.available then
      totals[#totals + 1] = { "; efr undo reverts this turn", "muted" }
    end
    out[1] = totals
  end
  rows.extend(out, refs_rows(turn, totals ~= nil, ctx))
  for _, line in ipairs(home.lines(turn.home_changes, ctx.home)) do
    rows.extend(out, block.note_rows({ text = line, role = "muted" }, ctx))
  end
  local note = ENDED_NOTE[turn.outcome]
  if note then
    out[#out + 1] = { { note, "muted" } }
  elseif ctx.turn_summary and turn.outcome ~= "failed" then
    out[#out + 1] = summary.end_row({
      outcome = turn.outcome,
      seconds = turn:seconds(ctx.now_ms),
      usage = turn.usage,
      context = turn.context,
    })
  end
  return out
end

-- Blocks after the first unfinished one stay below, in their order.
local function live_rest(self, live, last, ctx)
  for i = self.next + 1, #self.turn.blocks do
    local item = self.turn.blocks[i]
    local more
    if item.kind == "prose" then
      local writer = prose.new(ctx)
      more = writer:feed(item, ctx.cols)
      rows.extend(more, writer:live_rows(ctx.cols))
    elseif item.kind == "question" and item.state == "open" then
      local keys
      more, keys = question.card(item, ctx)
      more[#more + 1] = keys
    else
      local commit, open = show[item.kind](self, item, ctx, live)
      more = rows.extend(commit, open)
    end
    last = put(live, last, item, more)
  end
end

local function needs_status(turn, static)
  if turn.phase == "ended" or static then
    return false
  end
  for _, item in ipairs(turn.blocks) do
    local asked = item.kind == "question" and item.state == "open" and turn.answers
    if asked or item.kind == "call" and item.state == "running" then
      return false
    end
  end
  return true
end

--- What to draw now.
--- @param ctx efr.cli.view_context
--- @return table[] commit rows that go up once, table[] live rows below
function Transcript:frame(ctx)
  local commit, live = {}, {}
  local turn = self.turn
  while self.next <= #turn.blocks do
    local item = turn.blocks[self.next]
    local up, open, done = show[item.kind](self, item, ctx, commit)
    self.last = put(commit, self.last, item, up)
    if not done then
      live_rest(self, live, put(live, self.last, item, open), ctx)
      break
    end
    self.next = self.next + 1
  end
  if turn.phase == "ended" and not self.closed then
    self.closed = true
    self.last = put(commit, self.last, { kind = "note" }, M.end_rows(turn, ctx))
  end
  if needs_status(turn, ctx.static) then
    if #live > 0 or self.last then
      live[#live + 1] = {}
    end
    live[#live + 1] = status.row(turn, ctx)
  end
  return commit, live
end

return M
