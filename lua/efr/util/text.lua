-- Owns: work on byte strings: lines, words for people, cuts, base64.
-- Must not know: terminals (width and graphemes are efr.text) or any other part of efr.
-- Runs in every Lua state of efr. Pure.

local M = {}

local SLASH <const> = 47
local BASE64 <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

---@param s string
---@param prefix string
---@return boolean
function M.starts_with(s, prefix)
  return s:sub(1, #prefix) == prefix
end

---The string without blanks and line ends at both ends. Linear also on long runs of blanks.
---@param s string
---@return string
function M.trim(s)
  local first = s:find("%S")
  if not first then return "" end
  local last = #s
  while s:find("^%s", last) do last = last - 1 end
  return s:sub(first, last)
end

---The parts of s between each plain separator; an empty string has one empty part.
---@param s string
---@param separator string  not empty, no pattern
---@return string[]
function M.split(s, separator)
  local out, from = {}, 1
  while true do
    local i, j = s:find(separator, from, true)
    if not i then break end
    out[#out + 1] = s:sub(from, i - 1)
    from = j + 1
  end
  out[#out + 1] = s:sub(from)
  return out
end

---The lines of s without their line feeds; a last line feed starts no further line.
---@param s string
---@return string[]
function M.lines(s)
  local out = M.split(s, "\n")
  if out[#out] == "" then out[#out] = nil end
  return out
end

---A count with its noun: plural(1, "match", "matches").
---@param n integer
---@param one string
---@param many string? default: one .. "s"
---@return string
function M.plural(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many or one .. "s")
end

---The largest position at or before i where no UTF-8 sequence is torn: a cut after it is clean.
---@param s string
---@param i integer
---@return integer
function M.char_end(s, i)
  if i >= #s then return #s end
  -- A sequence has at most three continuation bytes; more of them are no UTF-8 at all.
  for j = i, math.max(i - 3, 0), -1 do
    local byte = s:byte(j + 1)
    if byte < 0x80 or byte >= 0xC0 then return j end
  end
  return i
end

local function line_end_before(s, i, slack)
  for j = i, math.max(i - slack, 1), -1 do
    if s:byte(j) == 10 then return j end
  end
  return M.char_end(s, i)
end

local function line_start_after(s, i, slack)
  local from = i > 1 and i - 1 or 1
  local feed = s:find("\n", from, true)
  if feed and feed - i <= slack and feed < #s then return feed + 1 end
  return M.char_end(s, i - 1) + 1
end

---Cuts the middle out of a long text, near line ends, and says how much is missing.
---The result never has more than limit bytes.
---@param s string
---@param limit integer  bytes, at least 128
---@return string text
---@return boolean truncated
function M.cut_middle(s, limit)
  if #s <= limit then return s, false end
  local room = limit - 64
  local slack = room // 8
  local head = line_end_before(s, room // 2, slack)
  local tail = line_start_after(s, #s - (room - room // 2) + 1, slack)
  local note = ("[... %d bytes omitted ...]\n"):format(tail - 1 - head)
  if s:byte(head) ~= 10 then note = "\n" .. note end
  return s:sub(1, head) .. note .. s:sub(tail), true
end

local pairs_of_digits

-- The two digits of each number of 12 bits; made at the first use.
local function digit_pairs()
  if not pairs_of_digits then
    pairs_of_digits = {}
    for n = 0, 4095 do
      local high, low = (n >> 6) + 1, (n & 63) + 1
      pairs_of_digits[n] = BASE64:sub(high, high) .. BASE64:sub(low, low)
    end
  end
  return pairs_of_digits
end

---Standard base64 with padding.
---@param bytes string
---@return string
function M.base64(bytes)
  local digits, out, count = digit_pairs(), {}, 0
  local whole = #bytes - #bytes % 3
  for i = 1, whole, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    out[count + 1] = digits[a << 4 | b >> 4]
    out[count + 2] = digits[(b & 15) << 8 | c]
    count = count + 2
  end
  local a, b = bytes:byte(whole + 1, whole + 2)
  if b then
    out[count + 1] = digits[a << 4 | b >> 4] .. digits[(b & 15) << 8]:sub(1, 1) .. "="
  elseif a then
    out[count + 1] = digits[a << 4] .. "=="
  end
  return table.concat(out)
end

local function base64_values()
  local values = {}
  for i = 1, #BASE64 do values[BASE64:byte(i)] = i - 1 end
  return values
end

local VALUES <const> = base64_values()

---Decodes standard base64 with padding; anything else is refused.
---@param text string
---@return string? bytes
---@return string? err
---@return string? code
function M.unbase64(text)
  if #text % 4 ~= 0 or not text:find("^[%w+/]*=?=?$") then
    return nil, "not base64", "EFR_BASE64"
  end
  local out = {}
  for i = 1, #text, 4 do
    local n, pad = 0, 0
    for j = i, i + 3 do
      local value = VALUES[text:byte(j)]
      if not value then pad = pad + 1 end
      n = n << 6 | (value or 0)
    end
    out[#out + 1] = string.char(n >> 16 & 255, n >> 8 & 255, n & 255):sub(1, 3 - pad)
  end
  return table.concat(out)
end

---An absolute path with `.` and empty components dropped and `..` taken back, never above the root.
---Lexical: links are not looked at.
---@param path string
---@return string
function M.fold_path(path)
  -- Most paths are folded already.
  if path:byte() == SLASH and not path:find("/%.?%.?/") and not path:find("/%.?%.?$") then
    return path
  end
  local out = {}
  for part in path:gmatch("[^/]+") do
    if part == ".." then
      out[#out] = nil
    elseif part ~= "." then
      out[#out + 1] = part
    end
  end
  return "/" .. table.concat(out, "/")
end

return M
