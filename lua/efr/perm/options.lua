-- Owns: options and operands in the words of a command, as a record of efr.perm.programs knows
-- them.
-- Must not know: paths or rules.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.

local M = {}

local byte, find, sub = string.byte, string.find, string.sub

local DASH <const> = 45
local EMPTY <const> = {}

local function has(list, name)
  if not list then return false end
  for i = 1, #list do
    if list[i] == name then return true end
  end
  return false
end

-- Every beginning of a record's long options to the one option it means; false: more than one.
local BEGINNINGS <const> = setmetatable({}, { __mode = "k" })

local function add_beginnings(out, names)
  for _, name in ipairs(names or EMPTY) do
    for stop = 1, #name do
      local start = name:sub(1, stop)
      if out[start] == nil then out[start] = name else out[start] = false end
    end
  end
end

local function beginnings(record)
  local out = BEGINNINGS[record]
  if not out then
    out = {}
    add_beginnings(out, record.long_flags)
    add_beginnings(out, record.long_values)
    for _, names in ipairs { record.long_flags or EMPTY, record.long_values or EMPTY } do
      for _, name in ipairs(names) do out[name] = name end
    end
    BEGINNINGS[record] = out
  end
  return out
end

-- The long option that a word means: itself, or the only one that starts with it.
local function long_name(record, name)
  return beginnings(record)[name] or nil
end

local function note(out, name, value)
  out.options[#out.options + 1] = { name = name, value = value }
end

-- Returns how many words the option takes.
local function long(record, out, words, i)
  local name, value = words[i].shape:match("^%-%-([^=]*)=(.*)$")
  name = name or words[i].shape:sub(3)
  local full = long_name(record, name)
  if not full then out.uncertain = true end
  full = full or name
  if value then
    note(out, full, { text = not value:find("\0") and value or nil, shape = value, fixed = value })
    return 1
  end
  if has(record.long_values, full) and words[i + 1] then
    note(out, full, words[i + 1])
    return 2
  end
  note(out, full)
  return 1
end

local function rest_word(word, from)
  local shape = word.shape:sub(from)
  return { text = word.text and shape, shape = shape, fixed = word.fixed:sub(from),
    glob = word.glob }
end

local function short(record, out, words, i)
  local word = words[i]
  local shape = word.shape
  local values, flags = record.values or "", record.flags or ""
  for at = 2, #shape do
    local letter = sub(shape, at, at)
    if find(values, letter, 1, true) then
      if at < #shape then
        note(out, letter, rest_word(word, at + 1))
        return 1
      end
      note(out, letter, words[i + 1])
      return words[i + 1] and 2 or 1
    end
    note(out, letter)
    if not find(flags, letter, 1, true) then
      out.uncertain = true
    end
  end
  return 1
end

---Options and operands. Words after `--` are operands; options may stand behind operands.
---@param record table
---@param words table[]  with the program first
---@return { operands: table[], options: table[], uncertain: boolean? } parsed
function M.parse(record, words)
  local operands = {}
  local out = { operands = operands, options = {}, uncertain = nil }
  local i, ended, count = 2, false, #words
  while i <= count do
    local word = words[i]
    local shape = word.shape
    if ended or shape == "-" or byte(shape) ~= DASH then
      operands[#operands + 1] = word
      i = i + 1
    elseif word.text == "--" then
      ended = true
      i = i + 1
    elseif byte(shape, 2) == DASH then
      i = i + long(record, out, words, i)
    else
      i = i + short(record, out, words, i)
    end
  end
  return out
end

---Every word that may be an operand: all but `--`.
---@param words table[]  with the program first
---@return table[] words
function M.all(words)
  local out = {}
  for i = 2, #words do
    if words[i].text ~= "--" then out[#out + 1] = words[i] end
  end
  return out
end

---Whether one of the options of a description stands there: {short, long, valued}.
---@param parsed table
---@param wanted table
---@return boolean
function M.has(parsed, wanted)
  local options, short_ones, valued = parsed.options, wanted.short, wanted.valued
  for i = 1, #options do
    local option = options[i]
    local name = option.name
    if #name > 1 then
      if has(wanted.long, name) then return true end
    elseif short_ones and find(short_ones, name, 1, true) then
      return true
    end
    local value = valued and valued[name]
    local given = value and option.value
    if given and (not given.text or value:sub(1, #given.text) == given.text) then return true end
  end
  return false
end

---Whether an option stands in words whose options are not all known; abbreviations count, and so
---does its letter anywhere in a word of short options.
---@param wanted { short: string?, long: string[]? }
---@param words table[]
---@return boolean
function M.stands(wanted, words)
  for i = 2, #words do
    local shape = words[i].shape
    local name = shape:match("^%-%-([^=]+)")
    if not name and wanted.short and shape:find("^%-[^-]*[" .. wanted.short .. "]") then
      return true
    end
    for _, one in ipairs(name and wanted.long or EMPTY) do
      if one:sub(1, #name) == name then return true end
    end
  end
  return false
end

local function long_value(wanted, words, i, fn)
  local name, value = words[i].shape:match("^%-%-([^=]*)=(.*)$")
  name = name or words[i].shape:sub(3)
  for _, one in ipairs(wanted.long or EMPTY) do
    if one:sub(1, #name) == name then
      if value then
        fn(rest_word(words[i], #name + 4))
      elseif words[i + 1] then
        fn(words[i + 1])
      end
    end
  end
end

local function short_value(wanted, words, i, fn)
  local shape = words[i].shape
  local at = shape:find("[" .. wanted.short .. "]", 2)
  if at and at < #shape then
    fn(rest_word(words[i], at + 1))
  elseif at and words[i + 1] then
    fn(words[i + 1])
  end
end

---The values of an option in words whose options are not all known: attached, after `=`, or the
---next word; abbreviations count.
---@param wanted { short: string?, long: string[]? }
---@param words table[]
---@param fn fun(word: table)
function M.each_value(wanted, words, fn)
  for i = 2, #words do
    local shape = words[i].shape
    if byte(shape) == DASH then
      if byte(shape, 2) == DASH then
        if #shape > 2 then long_value(wanted, words, i, fn) end
      elseif wanted.short and #shape > 1 then
        short_value(wanted, words, i, fn)
      end
    end
  end
end

return M
