-- Owns: what a word of a line becomes when it is read strictly: its text, or the construct that
-- keeps efr from knowing it.
-- Must not know: commands, rows, or what a program does with a word.
-- Runs in efrd, on the loop thread. Pure, and linear in the word but for brace expansion, which
-- has a limit.
--
-- A field is {text?, glob?, front?}, or a plain word of the AST, which has the same text: nobody
-- may change one. text is nil when it cannot be known; glob: the text holds an active pattern of
-- file names; front: a pattern stands first, so the word may become an option.
--
-- Policy: an allow list. Unquoted, only plain characters; whatever else is not named here is a
-- construct, and the reading ends.

local M = {}

local byte, find = string.byte, string.find

local EQUALS <const> = 61
local FIELDS_MAX <const> = 128
-- Of all fields of a word together.
local BYTES_MAX <const> = 64 * 1024
-- Longer words are not worth their work.
local PARTS_MAX <const> = 256
local PLAIN <const> = "^[%w%-_./:,+@%%=]*$"
local OPERATORS <const> = "[~^#]"
-- Sort by one of these, or test one of these. `e` and `+` run code.
local QUALIFIERS <const> = { ["."] = true, ["/"] = true, ["@"] = true, ["*"] = true, n = true,
  N = true, D = true }
local ORDERS <const> = { n = true, L = true, l = true, a = true, m = true, c = true, d = true }

local function has_control(s)
  return s:find("[%z\1-\8\11-\31\127]") ~= nil
end
M.has_control = has_control

-- Literal text ---------------------------------------------------------------------------------

local QUOTED <const> = {
  single = function(s) return not has_control(s), "character" end,
  dollar = function(s) return not has_control(s), "character" end,
  double = function(s)
    if s:find("!", 1, true) then return false, "history" end
    return not has_control(s), "character"
  end,
  backslash = function(s)
    return not has_control(s) and not s:find("[\n\128-\255]"), "character"
  end,
}

local function unquoted_construct(s)
  if s:find("!", 1, true) then return "history" end
  if s:find("[(){}]") then return "grouping" end
  if s:find("[*?%[%]]") then return "glob" end
  return "character"
end

-- `^ ~ #` are patterns where they stand behind something, and part of no option.
local function add_unquoted(field, s)
  if s:find(PLAIN) then
    if field.text == "" and s:sub(1, 1) == "=" then return nil, "character" end
    return true
  end
  local bare = s:gsub(OPERATORS, "")
  local first = field.text == "" and s:find("^" .. OPERATORS) ~= nil
  if not bare:find(PLAIN) or first then return nil, unquoted_construct(bare) end
  if (field.text .. s):sub(1, 1) == "-" then return nil, "glob" end
  field.glob = true
  return true
end

local function add_literal(field, part, wide)
  if not part.quote then
    local ok, construct = add_unquoted(field, part.s)
    if not ok then return nil, construct end
  else
    if part.quote == "dollar" and not wide then return nil, "expansion" end
    local ok, construct = QUOTED[part.quote](part.s)
    if not ok then return nil, construct end
  end
  field.text = field.text .. part.s
  return true
end

local function add_glob(field, part, wide)
  local s = part.s
  if s:find("!", 1, true) then return nil, "history" end
  if s:find("[()|]") then return nil, "grouping" end
  if not s:find("^[%w%-_./:,+@%%=*?%[%]<>^~#]*$") then return nil, "character" end
  if s:find("<", 1, true) and not (wide and s:find("^<%d*%-%d*>$")) then
    return nil, "redirection"
  end
  if field.text == "" then
    if not wide or s:find("^" .. OPERATORS) or s:sub(1, 1) == "-" then return nil, "glob" end
    field.front = true
  elseif field.text:sub(1, 1) == "-" and not field.front then
    return nil, "glob"
  end
  field.glob = true
  field.text = field.text .. s
  return true
end

-- Qualifiers that only choose and sort, and subscripts of digits.
local function is_plain_qualifier(text)
  local inner = text:match("^%((.*)%)$") or text
  local i = 1
  while i <= #inner do
    local char = inner:sub(i, i)
    local subscript = inner:match("^%[%d+%]", i) or inner:match("^%[%d+,%d+%]", i)
    if subscript then
      i = i + #subscript
    elseif (char == "o" or char == "O") and ORDERS[inner:sub(i + 1, i + 1)] then
      i = i + 2
    elseif QUALIFIERS[char] then
      i = i + 1
    else
      return false
    end
  end
  return true
end

-- Expansions of the wide form ------------------------------------------------------------------

-- `$name` and `${name}` of a loop over literal words.
local function variable(part, scope)
  local value = scope and scope.vars[part.name or ""]
  if not value then return nil end
  if part.text ~= "$" .. part.name and part.text ~= "${" .. part.name .. "}" then return nil end
  return value
end

local function is_literal_arithmetic(part)
  local inner = part.text:match("^%$%(%((.*)%)%)$") or part.text:match("^%$%[(.*)%]$")
  return inner ~= nil and inner:find("^[%s%d+*/%%()<>=&|^~?:,.-]*$") ~= nil
    and not inner:find("[<>=]%(")
end

local function add_unknown(field)
  field.unknown = true
  field.text = field.text .. "\0"
  return true
end

local ADDERS <const> = {}

function ADDERS.param(field, part, scope)
  local value = variable(part, scope)
  if not value then return nil, "expansion" end
  field.text = field.text .. value
  return true
end

function ADDERS.command(field, part, scope)
  local ok, construct = scope.inner(part.body)
  if not ok then return nil, construct end
  return add_unknown(field)
end

function ADDERS.arith(field, part)
  if not is_literal_arithmetic(part) then return nil, "arithmetic" end
  return add_unknown(field)
end

function ADDERS.qual(field, part)
  if not is_plain_qualifier(part.text) then return nil, "glob qualifier" end
  if field.text == "" then return nil, "glob" end
  field.glob = true
  return true
end

local REFUSED <const> = {
  param = "expansion", command = "command substitution", process = "process substitution",
  arith = "command substitution", brace = "grouping", qual = "grouping", equals = "character",
}

local function add(field, part, scope)
  local wide = scope ~= nil
  if part.t == "lit" then return add_literal(field, part, wide) end
  if part.t == "glob" then return add_glob(field, part, wide) end
  if part.t == "tilde" then
    if (part.name or "") ~= "" or field.text ~= "" then return nil, "character" end
    field.text, field.tilde = "~", true
    return true
  end
  local adder = wide and ADDERS[part.t]
  if adder then return adder(field, part, scope) end
  return nil, REFUSED[part.t] or "syntax"
end

-- Brace expansion ------------------------------------------------------------------------------

local function copy(field)
  return { text = field.text, glob = field.glob, front = field.front, unknown = field.unknown,
    tilde = field.tilde }
end

local function letters(part)
  local from, to = tostring(part.from), tostring(part.to)
  if part.step or not from:find("^%a$") or not to:find("^%a$") then return nil end
  local out, a, b = {}, from:byte(), to:byte()
  for code = a, b, a <= b and 1 or -1 do out[#out + 1] = string.char(code) end
  return out
end

-- Leading zeros and negative numbers have rules of their own, and are not known here.
local function small(text)
  text = tostring(text)
  return text:find("^%d%d?%d?%d?%d?%d?$") and not text:find("^0%d") and math.tointeger(text)
end

local function range_texts(part)
  local from, to = small(part.from), small(part.to)
  if not from or not to then return letters(part) end
  local step = 1
  if part.step then step = small(part.step) or 0 end
  if step < 1 or math.abs(from - to) // step >= FIELDS_MAX then return nil end
  local out = {}
  for n = from, to, from <= to and step or -step do out[#out + 1] = tostring(n) end
  return out
end

local function item_fields(part, scope)
  if not part.items then
    local texts = range_texts(part)
    if not texts then return nil, "brace expansion" end
    local out = {}
    for i, text in ipairs(texts) do out[i] = { text = text } end
    return out
  end
  local out = {}
  for _, item in ipairs(part.items) do
    local fields, construct = M.wide(item, scope)
    if not fields then return nil, construct end
    for _, field in ipairs(fields) do
      -- zsh may drop an empty word, and then the others move.
      if not field.text or field.text == "" then return nil, "brace expansion" end
      out[#out + 1] = field
    end
  end
  return out
end

local function add_braces(fields, part, scope)
  local items, construct = item_fields(part, scope)
  if not items then return nil, construct end
  if #fields * #items > FIELDS_MAX then return nil, "brace expansion" end
  local out = {}
  for _, field in ipairs(fields) do
    for _, item in ipairs(items) do
      local one = copy(field)
      if one.text:sub(1, 1) == "-" and item.glob then return nil, "glob" end
      one.front = one.front or (one.text == "" and item.front) or nil
      one.glob = one.glob or item.glob
      one.tilde = one.tilde or (one.text == "" and item.tilde) or nil
      one.text = one.text .. item.text
      out[#out + 1] = one
    end
  end
  return out
end

-- Words ----------------------------------------------------------------------------------------

-- zsh expands a tilde last: `~{root,x}` and `~$name` are directories of users.
local function names_user(field)
  return field.tilde and field.text:find("^~[^/]") ~= nil
end

-- A backslash at the end of a line joins two lines anywhere in a word, also inside a name.
local function is_joined(word)
  if not word.text:find("\\\n", 1, true) then return false end
  for _, part in ipairs(word.parts) do
    if part.t ~= "lit" or part.quote ~= "single" then return true end
  end
  return false
end

-- The most frequent word, one plain text, is a field as it stands.
local function plain_field(word)
  local parts = word.parts
  local part = parts[1]
  if parts[2] or not part or part.t ~= "lit" or part.quote then return nil end
  local s = part.s
  if s ~= word.text or not find(s, PLAIN) or byte(s) == EQUALS then return nil end
  return word
end

---The one field of a word in the strict reading.
---@param word table
---@return table? field
---@return string? construct
function M.strict(word)
  local plain = plain_field(word)
  if plain then return plain end
  if #word.parts > PARTS_MAX then return nil, "length" end
  if is_joined(word) then return nil, "unfinished" end
  local field = { text = "" }
  for _, part in ipairs(word.parts) do
    local ok, construct = add(field, part, nil)
    if not ok then return nil, construct end
  end
  if names_user(field) then return nil, "character" end
  return field
end

local function process_field(word, scope)
  local part = word.parts[1]
  if #word.parts ~= 1 or part.dir ~= "<" then return nil, "process substitution" end
  local ok, construct = scope.inner(part.body)
  if not ok then return nil, construct end
  return { { text = "/proc/self/fd/0" } }
end

---The fields of a word in the wide form.
---@param word table
---@param scope { vars: table<string, string>, inner: fun(body: table): boolean?, string? }
---@return table[]? fields
---@return string? construct
function M.wide(word, scope)
  local plain = plain_field(word)
  if plain then return { plain } end
  if #word.parts > PARTS_MAX then return nil, "length" end
  if is_joined(word) then return nil, "unfinished" end
  local first = word.parts[1]
  if first and first.t == "process" then return process_field(word, scope) end
  local fields = { { text = "" } }
  for _, part in ipairs(word.parts) do
    local construct
    if part.t == "brace" then
      fields, construct = add_braces(fields, part, scope)
      if not fields then return nil, construct end
      if #fields * #word.text > BYTES_MAX then return nil, "brace expansion" end
    else
      for _, field in ipairs(fields) do
        local ok
        ok, construct = add(field, part, scope)
        if not ok then return nil, construct end
      end
    end
  end
  for _, field in ipairs(fields) do
    if names_user(field) then return nil, "character" end
    if field.unknown then field.text = nil end
  end
  return fields
end

---Whether a word is only data (a here-document, a here-string): any text, and expansions of the
---wide form.
---@param word table
---@param scope table
---@return boolean? ok
---@return string? construct
function M.data(word, scope)
  for _, part in ipairs(word.parts) do
    if part.t == "lit" then
      if has_control(part.s) then return nil, "character" end
    else
      local adder = ADDERS[part.t]
      if not adder or part.t == "qual" then return nil, REFUSED[part.t] or "syntax" end
      local ok, construct = adder({ text = "" }, part, scope)
      if not ok then return nil, construct end
    end
  end
  return true
end

return M
