-- Owns: what one run of the shell grammar must remember beside the match: the depth of nesting, the
-- here-documents that wait for their bodies, failed arithmetic openers, and how the run ends early.
-- Must not know: any rule of the grammar.
-- Runs in efrd, efr and the rules process. Pure; one run at a time, which may hold inner ones.
--
-- The grammar commits: after an opener only its closer may follow, and everything else raises here.
-- So nothing is read twice, and a line with a fault is opaque as a whole.

local lpeg = require "lpeg"

local M = {}

local Cmt, P = lpeg.Cmt, lpeg.P

local error, pairs, setmetatable, type, unpack = error, pairs, setmetatable, type, table.unpack

local MAX_DEPTH <const> = 64
local MAX_STEPS <const> = 8000
local MAX_NOT_MATH <const> = 8
local MAX_NOT_MATH_BYTES <const> = 4096
local BACKSLASH <const> = 92

---@class efr.ShellFailure  raised out of a match; parse catches it
---@field why string  "depth", "steps" or "no match"
---@field what string  what was missing or too deep
---@field pos integer
local Failure = {}
Failure.__index = Failure
M.Failure = Failure

local depth, steps, failed_math, commented
local pending, opens, not_math, bodies, words, readers, origin

_ENV = nil

---Starts a run.
---@param by table<string, fun(text: string): table>  what reads an inner text of each kind
function M.reset(by)
  depth, steps, failed_math, origin = 0, 0, 0, 0
  pending, opens, not_math, bodies, words = {}, {}, {}, {}, {}
  readers, commented = by, nil
end

---A comment: dropped, but known.
M.comment = Cmt("#" * (1 - P "\n") ^ 0, function(_, pos)
  commented = true
  return pos
end)

---Whether the run has met a comment anywhere, also in what it then read in another way.
---@return boolean?
function M.has_comments()
  return commented
end

local function fail(why, what, pos)
  error(setmetatable({ why = why, what = what, pos = pos + origin }, Failure), 0)
end
M.fail = fail

local function shift(value, by)
  for key, item in pairs(value) do
    if type(item) == "table" then
      shift(item, by)
    elseif key == "pos" or key == "stop" then
      value[key] = item + by
    end
  end
end

---Reads an inner text (of backquotes, of a here-document) that stands at `at`. The depth goes on;
---the rest of the memory is its own. Positions are those of the line as far as no character of it
---was dropped.
---@param at integer
---@param reader string
---@param text string
---@return table node
function M.inner(at, reader, text)
  local saved = { pending, opens, not_math, bodies, words, origin }
  pending, opens, not_math, bodies, words, origin = {}, {}, {}, {}, {}, origin + at - 1
  depth = depth + 1
  if depth > MAX_DEPTH then
    fail("depth", "nesting", 1)
  end
  M.made(4, 1)
  local result = readers[reader](text)
  depth = depth - 1
  pending, opens, not_math, bodies, words, origin = unpack(saved)
  shift(result, at - 1)
  return result
end

---Counts what was made; a line of too much ends the run, so that no line takes long.
---@param count integer
---@param pos integer
function M.made(count, pos)
  steps = steps + count
  if steps > MAX_STEPS then
    fail("steps", "end of the line", pos)
  end
end

local function push(_, pos)
  depth = depth + 1
  if depth > MAX_DEPTH then
    fail("depth", "nesting", pos)
  end
  return pos
end

local function pop(_, pos)
  depth = depth - 1
  return pos
end

---Finishes the captures of a pattern at once: LPeg allows 200 captures inside each other, and the
---grammar makes a dozen a level.
---@param pattern any
---@return any pattern
function M.now(pattern)
  return Cmt(pattern, function(_, pos, ...) return pos, ... end)
end

---One level deeper.
M.enter = Cmt(P(true), push)

---One level up.
M.leave = Cmt(P(true), pop)

---A pattern that ends the run.
---@param what string
---@return any pattern
function M.missing(what)
  -- The P(1) is never tried; it tells LPeg that no loop turns on an empty match here.
  return Cmt(P(true), function(_, pos)
    fail("no match", what, pos)
  end) * P(1)
end

---The end of what enter began: the closer, or the run ends.
---@param closer any pattern
---@param what string
---@return any pattern
function M.close(closer, what)
  return closer * M.leave + M.missing(what)
end

---As enter, for a command substitution: here-documents inside find their bodies inside.
M.enter_scope = Cmt(P(true), function(subject, pos)
  push(subject, pos)
  opens[depth] = pending
  pending = {}
  return pos
end)

M.leave_scope = Cmt(P(true), function(subject, pos)
  if pending[1] then
    fail("no match", "here-document without a body", pos)
  end
  pending = opens[depth]
  return pop(subject, pos)
end)

---After `((`: whether this may be arithmetic. What turned out to be a subshell is not tried again.
M.enter_math = Cmt(P(true), function(subject, pos)
  if not_math[pos] then
    return false
  end
  push(subject, pos)
  opens[depth] = { pos, #pending }
  return pos
end)

---Takes back what enter_math began and fails, so that the text is read as commands.
M.fail_math = Cmt(P(true), function(_, pos)
  local open = opens[depth]
  failed_math = failed_math + 1
  -- A bound on what is read twice.
  if failed_math > MAX_NOT_MATH or pos - open[1] > MAX_NOT_MATH_BYTES then
    fail("no match", "closing ))", pos)
  end
  not_math[open[1]] = true
  for i = #pending, open[2] + 1, -1 do
    pending[i] = nil
  end
  depth = depth - 1
  return false
end)

---Keeps a here-document until the next newline.
---@param redir efr.ShellRedir
function M.wait(redir)
  pending[#pending + 1] = redir
end

-- Whether the line that ends before `stop` goes on: an odd number of backslashes.
local function goes_on(subject, from, stop)
  local at = stop - 1
  while at >= from and subject:byte(at) == BACKSLASH do
    at = at - 1
  end
  return (stop - 1 - at) % 2 == 1
end

-- The end of the line at `from`, and its text where it can be the delimiter. `joins`: a backslash
-- at its end takes the next line along.
local function logical_line(subject, from, joins, limit)
  local stop = subject:find("\n", from, true) or #subject + 1
  local line = stop - from <= limit and subject:sub(from, stop - 1)
  local start = from
  while joins and stop <= #subject and goes_on(subject, start, stop) do
    start = stop + 1
    stop = subject:find("\n", start, true) or #subject + 1
    line = line and stop - from <= limit and line:sub(1, -2) .. subject:sub(start, stop - 1)
  end
  return line, stop
end

-- Reads one body that starts at `from`; returns the position after its last line.
local function take_body(subject, from, redir)
  local doc = redir.heredoc
  -- A delimiter that is cut into single characters by joins is thrice as long.
  local limit = 3 * #doc.delimiter + 3
  local at = from
  while at <= #subject do
    local start = doc.strip and subject:match("^\t*()", at) or at
    local line, stop = logical_line(subject, start, not doc.quoted, limit)
    if line == doc.delimiter then
      doc.text, doc.closed = subject:sub(from, at - 1), true
      doc.pos, doc.stop = from, at - 1
      at = stop + 1
      break
    end
    at = stop + 1
  end
  if not doc.closed then
    doc.text, doc.pos, doc.stop = subject:sub(from), from, #subject
  end
  local text = doc.strip and doc.text:gsub("^\t+", ""):gsub("\n\t+", "\n") or doc.text
  doc.body = M.inner(from, doc.quoted and "verbatim" or "body", text)
  return at > #subject + 1 and #subject + 1 or at
end

local function take_bodies(subject, pos)
  local known = bodies[pos]
  if known then
    return known
  end
  if not pending[1] then
    return pos
  end
  local at = pos
  local waiting = pending
  pending = {}
  for i = 1, #waiting do
    at = take_body(subject, at, waiting[i])
  end
  bodies[pos] = at
  return at
end

---Keeps what the rule of a word has read at a position.
---@param pos integer
---@param what table
function M.keep(pos, what)
  words[pos] = what
end

---@param pos integer
---@return table?
function M.kept(pos)
  return words[pos]
end

---Matches where keep was called.
M.is_kept = Cmt(P(true), function(_, pos) return words[pos] ~= nil end)

---After a newline that ends a command or at the end of the text: the bodies that wait.
M.bodies = Cmt(P(true), take_bodies)

return M
