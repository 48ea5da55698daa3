-- Owns: differences between two texts, by lines.
-- Must not know: files, paths or how a diff is shown.
-- Runs in every Lua state of efr. Pure.
--
-- The greedy algorithm of Myers, with the common start and end taken off first. Its table is
-- limited to 2^20 cells; texts that differ more than that count as replaced from the first to the
-- last differing line, which is correct, only longer.

local M = {}

local MAX_CELLS <const> = 1 << 20
local BLOCK_BYTES <const> = 65536

-- The lines with their line feeds, so that a missing last line feed is a difference.
local function split(s)
  local out, from = {}, 1
  while from <= #s do
    local feed = s:find("\n", from, true) or #s
    out[#out + 1] = s:sub(from, feed)
    from = feed + 1
  end
  return out
end

local function goes_down(v, k, d)
  return k == -d or (k ~= d and v[k - 1] < v[k + 1])
end

-- Lines lo..a_hi of a against lo..b_hi of b. trace[d] holds the furthest x of each diagonal before
-- step d. Returns the trace and the number of steps, or nil when it would grow over its limit.
local function forward(a, b, lo, a_hi, b_hi)
  local n, m = a_hi - lo + 1, b_hi - lo + 1
  local v, trace, cells = { [1] = 0 }, {}, 0
  for d = 0, n + m do
    cells = cells + d + 1
    if cells > MAX_CELLS then return nil end
    local before = {}
    for k = -d - 1, d + 1 do before[k] = v[k] end
    trace[d] = before
    for k = -d, d, 2 do
      local x = goes_down(v, k, d) and v[k + 1] or v[k - 1] + 1
      local y = x - k
      while x < n and y < m and a[lo + x] == b[lo + y] do x, y = x + 1, y + 1 end
      v[k] = x
      if x >= n and y >= m then return trace, d end
    end
  end
  return nil
end

local function backward(trace, steps, lo, x, y, marks)
  for d = steps, 1, -1 do
    local v, k = trace[d], x - y
    local from = goes_down(v, k, d) and k + 1 or k - 1
    local px = v[from]
    local py = px - from
    local snake = math.min(x - px, y - py)
    x, y = x - snake, y - snake
    if x == px then marks.came[lo + y - 1] = true else marks.gone[lo + x - 1] = true end
    x, y = px, py
  end
end

-- Which lines of a are gone and which lines of b came.
local function compare(a, b)
  local lo, a_hi, b_hi = 1, #a, #b
  while lo <= a_hi and lo <= b_hi and a[lo] == b[lo] do lo = lo + 1 end
  while a_hi >= lo and b_hi >= lo and a[a_hi] == b[b_hi] do a_hi, b_hi = a_hi - 1, b_hi - 1 end
  local marks = { gone = {}, came = {} }
  local trace, steps
  if a_hi >= lo and b_hi >= lo then trace, steps = forward(a, b, lo, a_hi, b_hi) end
  if trace then
    backward(trace, steps, lo, a_hi - lo + 1, b_hi - lo + 1, marks)
  else
    for i = lo, a_hi do marks.gone[i] = true end
    for i = lo, b_hi do marks.came[i] = true end
  end
  return marks
end

---@class efr.DiffLine
---@field tag string  " " (in both), "-" (only in old) or "+" (only in new)
---@field text string  with its line feed; the last line may have none
---@field old integer?  line number in old
---@field new integer?  line number in new

---All lines of both texts in order; of one place first the removed lines, then the added ones.
---@param old string
---@param new string
---@return efr.DiffLine[] lines
---@return integer added
---@return integer removed
function M.lines(old, new)
  local a, b = split(old), split(new)
  local marks = compare(a, b)
  local out, added, removed, i, j = {}, 0, 0, 1, 1
  while i <= #a or j <= #b do
    if marks.gone[i] then
      out[#out + 1] = { tag = "-", text = a[i], old = i }
      i, removed = i + 1, removed + 1
    elseif marks.came[j] then
      out[#out + 1] = { tag = "+", text = b[j], new = j }
      j, added = j + 1, added + 1
    else
      out[#out + 1] = { tag = " ", text = a[i], old = i, new = j }
      i, j = i + 1, j + 1
    end
  end
  return out, added, removed
end

-- The ranges of lines that are shown: each change with its context, near ones joined.
local function hunks(lines, context)
  local out, last = {}, nil
  for i, line in ipairs(lines) do
    if line.tag ~= " " then
      local from, to = math.max(i - context, 1), math.min(i + context, #lines)
      if last and from <= last.to + 1 then
        last.to = to
      else
        last = { from = from, to = to }
        out[#out + 1] = last
      end
    end
  end
  return out
end

local function range(start, count)
  if count == 1 then return tostring(start) end
  return ("%d,%d"):format(count == 0 and start - 1 or start, count)
end

-- Old and new line numbers at which each hunk starts, and how many lines of each it covers.
local function header(lines, hunk, old_start, new_start)
  local old_count, new_count = 0, 0
  for i = hunk.from, hunk.to do
    local tag = lines[i].tag
    if tag ~= "+" then old_count = old_count + 1 end
    if tag ~= "-" then new_count = new_count + 1 end
  end
  return ("@@ -%s +%s @@"):format(range(old_start, old_count), range(new_start, new_count))
end

local function emit(out, line)
  local text = line.text
  if text:sub(-1) == "\n" then
    out[#out + 1] = line.tag .. text:sub(1, -2)
  else
    out[#out + 1] = line.tag .. text
    out[#out + 1] = "\\ No newline at end of file"
  end
end

local function limited(out, opts)
  local bytes = 0
  for i, line in ipairs(out) do
    bytes = bytes + #line + 1
    if i > (opts.max_lines or math.huge) or bytes > (opts.max_bytes or math.huge) then
      local note = ("\n[... %d more lines of the diff]\n"):format(#out - i + 1)
      return table.concat(out, "\n", 1, i - 1) .. note
    end
  end
  return #out > 0 and table.concat(out, "\n") .. "\n" or ""
end

-- Byte lengths that both texts have in common at their start and, of the rest, at their end. Whole
-- blocks are compared first: that is a memcmp, where a loop over bytes would be Lua.
local function common(a, b)
  local most = math.min(#a, #b)
  local head = 0
  local step = BLOCK_BYTES
  while step >= 1 do
    while head + step <= most and a:sub(head + 1, head + step) == b:sub(head + 1, head + step) do
      head = head + step
    end
    step = step // 2
  end
  local tail = 0
  most, step = most - head, BLOCK_BYTES
  while step >= 1 do
    while tail + step <= most
      and a:sub(#a - tail - step + 1, #a - tail) == b:sub(#b - tail - step + 1, #b - tail) do
      tail = tail + step
    end
    step = step // 2
  end
  return head, tail
end

-- The start of the line that is `count` lines before the line that holds position i.
local function lines_before(s, i, count)
  for _ = 0, count do
    i = i - 1
    while i > 0 and s:byte(i) ~= 10 do i = i - 1 end
    if i <= 0 then return 1 end
  end
  return i + 1
end

-- The last byte of the line that is `count` lines after the line that holds position i.
local function lines_after(s, i, count)
  for _ = 0, count do
    local feed = s:find("\n", i, true)
    if not feed then return #s end
    i = feed + 1
  end
  return i - 1
end

-- Only the part that differs, with the lines around it: the rest of two big files is never split
-- into lines. Returns both parts and the number of lines before them.
local function differing(old, new, context)
  local head, tail = common(old, new)
  local from = lines_before(old, head + 1, context)
  local old_to = lines_after(old, #old - tail + 1, context)
  local new_to = #new - (#old - old_to)
  local _, before = old:sub(1, from - 1):gsub("\n", "")
  return old:sub(from, old_to), new:sub(from, new_to), before
end

---A unified diff; the empty string when both texts are equal. A cut diff ends in a line
---`[... N more lines of the diff]`.
---@param old string
---@param new string
---@param opts { context: integer?, max_lines: integer?, max_bytes: integer?, path: string? }?
---  context: default 3; path: adds the two lines `--- PATH` and `+++ PATH`
---@return string text
---@return integer added  lines
---@return integer removed  lines
function M.unified(old, new, opts)
  opts = opts or {}
  local context = opts.context or 3
  local old_part, new_part, before = differing(old, new, context)
  local lines, added, removed = M.lines(old_part, new_part)
  local out = {}
  if opts.path and added + removed > 0 then
    out = { "--- " .. opts.path, "+++ " .. opts.path }
  end
  local at, old_line, new_line = 1, before + 1, before + 1
  for _, hunk in ipairs(hunks(lines, context)) do
    local function pass(to, fn)
      for i = at, to do
        if lines[i].tag ~= "+" then old_line = old_line + 1 end
        if lines[i].tag ~= "-" then new_line = new_line + 1 end
        if fn then fn(lines[i]) end
      end
      at = to + 1
    end
    pass(hunk.from - 1)
    out[#out + 1] = header(lines, hunk, old_line, new_line)
    pass(hunk.to, function(line) emit(out, line) end)
  end
  return limited(out, opts), added, removed
end

return M
