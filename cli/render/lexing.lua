-- What the lexers share: a language as a table becomes a function from a line to its tokens.
-- Owns: the order in which tokens are tried, blocks that span lines. Must not know: colours. Pure.
-- The lexers are for reading, not for compiling: what they do not know stays plain text.

local lpeg = require "lpeg"
local spans = require "efr.cli.render.spans"

local P <const>, R <const>, S <const>, V <const> = lpeg.P, lpeg.R, lpeg.S, lpeg.V
local C <const>, Cc <const> = lpeg.C, lpeg.Cc

local M = {}

local WORD <const> = (R("az", "AZ", "\x80\xFF") + "_") * (R("az", "AZ", "09", "\x80\xFF") + "_") ^ 0
local DIGITS <const> = R "09" * (R("09", "af", "AF") + "_") ^ 0
M.NUMBER = P "0" * S "xXbBoO" * (R("09", "af", "AF") + "_") ^ 1
  + DIGITS * (P "." * DIGITS) ^ -1 * (S "eE" * S "+-" ^ -1 * R "09" ^ 1) ^ -1 * R("az", "AZ") ^ 0
M.WORD = WORD

--- Words of a text as a set.
function M.set(text)
  local out = {}
  for word in text:gmatch("%S+") do
    out[word] = true
  end
  return out
end

local function token(pattern, role)
  return C(pattern) * Cc(role)
end

-- A string in quotes on one line; without its end it goes to the end of the line.
local function quoted(quote)
  return P(quote) * (P "\\" * 1 + (1 - P(quote))) ^ 0 * P(quote) ^ -1
end

-- Words by what they are; a word before "(" is a call.
local function words(spec)
  local keywords, types, constants = spec.keywords or {}, spec.types or {}, spec.constants or {}
  local word = spec.word or WORD
  return lpeg.Cmt(C(word) * lpeg.Cp(), function(s, i, text)
    local key = spec.any_case and text:lower() or text
    local role = keywords[key] and "code.keyword" or types[key] and "code.type"
      or constants[key] and "code.number"
      or spec.calls ~= false and s:find("^%(", i) and "code.function" or "code"
    return i, text, role == "code" and "" or role
  end)
end

-- The opening of a block that may span lines: its text and, as its role, its number.
local function openings(blocks)
  local out = P(false)
  for i, block in ipairs(blocks) do
    out = out + C(P(block.open)) * Cc(i)
  end
  return out
end

local function tokens_of(spec)
  local out = P(false)
  for _, mark in ipairs(spec.comments or {}) do
    out = out + token(P(mark) * P(1) ^ 0, "code.comment")
  end
  out = out + openings(spec.blocks or {})
  if spec.extra then
    out = out + spec.extra
  end
  for _, quote in ipairs(spec.quotes or { '"', "'" }) do
    out = out + token(quoted(quote), "code.string")
  end
  return out + words(spec) + token(M.NUMBER, "code.number") + token(P(1), "")
end

--- A lexer.
--- @param spec {comments: string[]?, blocks: table[]?, extra: userdata?, quotes: string[]?,
---   keywords: table?, types: table?, constants: table?, any_case: boolean?, calls: boolean?,
---   word: userdata?} blocks: {open=, close=, role=}, which may span lines; extra: an LPeg pattern
---   that captures a text and its role
--- @return {line: fun(line: string, state: integer?): table, integer?} lexer  line gives the spans
---   of a line and the block that is open at its end
function M.new(spec)
  local blocks = spec.blocks or {}
  local one = tokens_of(spec) * lpeg.Cp()
  local function line(s, state)
    local row, i = {}, 1
    while i <= #s do
      if state then
        local block = blocks[state]
        local _, stop = s:find(block.close, i, true)
        spans.add(row, s:sub(i, stop), block.role)
        i, state = (stop or #s) + 1, not stop and state or nil
      else
        local text, role, after = one:match(s, i)
        if type(role) == "number" then
          local block = blocks[role]
          local _, stop = s:find(block.close, after, true)
          spans.add(row, s:sub(i, stop), block.role)
          i, state = (stop or #s) + 1, not stop and role or nil
        else
          spans.add(row, text, role ~= "" and role or nil)
          i = after
        end
      end
    end
    return row, state
  end
  return { line = line }
end

M.P, M.R, M.S, M.V, M.token = P, R, S, V, token

return M
