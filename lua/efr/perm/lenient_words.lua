-- Owns: what a word of the AST is for the lenient and the path reading: its text as far as it is
-- known, and the lines that stand inside it.
-- Must not know: commands or programs.
-- Runs in efrd, on the loop thread. Pure, and linear in the word; brace expansion has a limit.
--
-- A word becomes one or more of
--   {text?, shape, fixed, glob?, home?, user?, node?}, or a plain word of the AST as it stands:
--     text   nil when an expansion stands in it
--     shape  the text with "\0" for what is not known, patterns as they stand
--     fixed  the literal text before the first expansion or pattern
--     glob   it holds an active pattern of file names
--     dots   its qualifiers let it match names that start with a dot
--     home   it starts with an active `~` or `$HOME`; text then starts with "~"
--     process  it is a `<(...)`: a descriptor, no path of its own
--     splits it may become several words: an unquoted `$(...)`
--     user   it starts with `~name` or another form whose directory is not known
--     tilde  what it starts with is a tilde of the line
--     node   the word of the AST, where it is not all plain text

local M = {}

local UNKNOWN <const> = "\0"
local WORDS_MAX <const> = 64
-- Longer words are not worth their work.
local PARTS_MAX <const> = 256

-- Inner lines ----------------------------------------------------------------------------------

local each_part

local function each_word(word, fn)
  if word and word.parts then each_part(word.parts, fn) end
end

local function each_of(words, fn)
  for _, word in ipairs(words or {}) do each_word(word, fn) end
end

function each_part(parts, fn)
  for _, part in ipairs(parts) do
    -- Plain text, which most parts are, holds nothing.
    if part.t ~= "lit" then
      if part.body then fn(part.body) end
      if part.parts then each_part(part.parts, fn) end
      each_of(part.items, fn)
      each_of(part.values, fn)
      each_of(part.subscripts, fn)
      each_word(part.subscript, fn)
      each_word(part.word, fn)
    end
  end
end

---Calls fn for every list that stands inside a word, in order.
---@param word table?
---@param fn fun(list: table)
function M.inner(word, fn)
  each_word(word, fn)
end

-- Text -----------------------------------------------------------------------------------------

local function add(word, shape, known)
  word.shape = word.shape .. shape
  if not known then
    word.open = true
  elseif not word.open and not word.glob then
    word.fixed = word.fixed .. shape
  end
end

local ADD <const> = {
  lit = function(word, part) add(word, part.s, true) end,
  glob = function(word, part)
    word.glob = true
    -- In braces a tilde at the start is read as a pattern, and is a directory all the same.
    if word.shape == "" and part.s:sub(1, 1) == "~" then word.user = true end
    add(word, part.s, true)
  end,
  qual = function(word, part)
    word.glob = true
    word.dots = word.dots or part.text:find("D", 1, true) ~= nil
  end,
  tilde = function(word, part)
    local name = part.name or ""
    if name == "" then word.home = true else word.user = true end
    word.tilde = word.shape == "" or nil
    add(word, "~" .. name, true)
  end,
  process = function(word, part)
    word.process = word.shape == "" and part.dir ~= ">"
    add(word, UNKNOWN, false)
  end,
  equals = function(word, part) add(word, part.name or "", true) end,
  command = function(word, part)
    word.splits = word.splits or not part.quote
    add(word, UNKNOWN, false)
  end,
  param = function(word, part)
    if word.shape == "" and (part.text == "$HOME" or part.text == "${HOME}") then
      word.home = true
      return add(word, "~", true)
    end
    return add(word, UNKNOWN, false)
  end,
}

local function copy(word)
  local out = {}
  for key, value in pairs(word) do out[key] = value end
  return out
end

local function append(word, other)
  local out = copy(word)
  if out.shape == "" then
    out.home, out.user, out.tilde = other.home, other.user, other.tilde
  end
  if not out.open and not out.glob then out.fixed = out.fixed .. other.fixed end
  out.shape = out.shape .. other.shape
  out.splits, out.dots = out.splits or other.splits, out.dots or other.dots
  out.open, out.glob = out.open or other.open, out.glob or other.glob
  return out
end

local function numbers(part)
  local from, to = math.tointeger(tonumber(part.from)), math.tointeger(tonumber(part.to))
  if not from or not to or part.step or math.abs(from - to) >= WORDS_MAX then return nil end
  local out = {}
  for n = from, to, from <= to and 1 or -1 do
    out[#out + 1] = { shape = tostring(n), fixed = tostring(n) }
  end
  return out
end

local resolve

local function alternatives(part, vars)
  if not part.items then return numbers(part) end
  local out = {}
  for _, item in ipairs(part.items) do
    for _, word in ipairs(resolve(item, vars)) do out[#out + 1] = word end
  end
  return out
end

local function cross(words, items)
  if not items or #items == 0 or #words * #items > WORDS_MAX then
    for _, word in ipairs(words) do add(word, UNKNOWN, false) end
    return words
  end
  local out = {}
  for _, word in ipairs(words) do
    for _, item in ipairs(items) do out[#out + 1] = append(word, item) end
  end
  return out
end

-- The value of a loop's variable, where the part is the variable and nothing more.
local function value_of(part, vars)
  local value = vars and part.t == "param" and vars[part.name or ""]
  if not value then return nil end
  local plain = part.text == "$" .. part.name or part.text == "${" .. part.name .. "}"
  return plain and { value } or nil
end

function resolve(node, vars)
  local words = { { shape = "", fixed = "" } }
  for _, part in ipairs(node.parts) do
    local value = value_of(part, vars)
    if value then
      words = cross(words, value)
    elseif part.t == "brace" then
      words = cross(words, alternatives(part, vars))
    else
      local one = ADD[part.t]
      for _, word in ipairs(words) do
        if one then one(word, part) else add(word, UNKNOWN, false) end
      end
    end
  end
  return words
end

-- zsh expands a tilde last: `~{root,x}` and `~$name` are directories of users.
local function judge_tilde(word)
  if word.tilde and word.home and word.shape:find("^~[^/]") then
    word.home, word.user = nil, true
  end
end

---Whether a word of the AST is one part of plain text.
---@param node table
---@return boolean
function M.is_plain(node)
  local parts = node.parts
  return parts[2] == nil and parts[1] ~= nil and parts[1].t == "lit"
end

---What such a word becomes.
---@param node table
---@return table? word  nil for another word
function M.plain(node)
  if node.shape then return node end
  local parts = node.parts
  local part = parts[1]
  if parts[2] or not part or part.t ~= "lit" then return nil end
  local s = part.s
  return { text = s, shape = s, fixed = s }
end

---What a word of the AST becomes.
---@param node table
---@param vars table<string, table>?  the word that a variable stands for
---@return table[] words  one, or more for braces
function M.resolve(node, vars)
  local parts = node.parts
  local plain = M.plain(node)
  if plain then return { plain } end
  if #parts > PARTS_MAX then
    local word = M.unknown()
    word.node, word.splits = node, true
    return { word }
  end
  local words = resolve(node, vars)
  for _, word in ipairs(words) do
    word.node = node
    judge_tilde(word)
    if not word.open then word.text = word.shape end
  end
  return words
end

---A word of plain text.
---@param text string
---@return table word
function M.literal(text)
  return { text = text, shape = text, fixed = text }
end

---A word that is not known.
---@return table word
function M.unknown()
  return { shape = UNKNOWN, fixed = "", open = true }
end

return M
