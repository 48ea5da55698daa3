-- Owns: reading the text of a git config, for the settings that decide what a call must not write.
-- Must not know: where the file lies, what its settings mean.
-- Runs in efrd. Pure.
--
-- Policy: the format of git-config(1), "Syntax". git stops at the first thing that it cannot read;
-- here only that line is left out and the rest is read, because whoever mends the file makes the
-- rest count again, so at least what git would read is found.

local M = {}

M.MAX_BYTES = 1024 * 1024 ---@type integer

local ESCAPES <const> = { n = "\n", t = "\t", b = "\b", ['"'] = '"', ["\\"] = "\\" }

---@class efr.sbx.GitSetting
---@field key string  section.subsection.variable; section and variable in lower case
---@field section string
---@field subsection string?
---@field variable string
---@field value string?  nil: the variable stands alone

-- `[section "sub section"]`, `[section.sub]` or `[section]` at a place; the place after it.
local function read_header(text, at)
  local section, next_at = text:match("^%[([%w.-]+)%]()", at)
  if section then
    local base, sub = section:match("^([^.]*)%.(.*)$")
    -- git folds the old form to lower case.
    return (base or section):lower(), sub and sub:lower(), next_at
  end
  local quoted
  section, next_at = text:match('^%[([%w.-]+)[ \t\r]+"()', at)
  if not section then return nil end
  quoted = {}
  while true do
    local plain, stop = text:match('^([^"\\\n]*)()', next_at)
    quoted[#quoted + 1] = plain
    local byte = text:sub(stop, stop)
    if byte == '"' then
      local after = text:match('^"%]()', stop)
      if not after then return nil end
      return section:lower(), table.concat(quoted), after
    elseif byte ~= "\\" or text:sub(stop + 1, stop + 1) == "\n" or stop >= #text then
      return nil
    end
    quoted[#quoted + 1] = text:sub(stop + 1, stop + 1)
    next_at = stop + 2
  end
end

-- One piece of a value at a place: what it adds, the next place, and whether quotes changed.
local function value_piece(text, at, in_quotes)
  local byte = text:sub(at, at)
  if byte == '"' then return "", at + 1, not in_quotes end
  if byte == "\\" then
    local next_byte = text:sub(at + 1, at + 1)
    if next_byte == "\n" then return "", at + 2, in_quotes end
    local escaped = ESCAPES[next_byte]
    if not escaped then return nil end
    return escaped, at + 2, in_quotes
  end
  local plain, stop = text:match(in_quotes and '^([^"\\\n]+)()' or '^([^"\\\n;#]+)()', at)
  if not plain then return nil end
  return plain, stop, in_quotes
end

-- A value up to the end of its line. Blanks outside of quotes count only between other bytes.
local function read_value(text, at)
  local out, kept, in_quotes = {}, 0, false
  at = text:match("^[ \t\r]*()", at)
  while true do
    local byte = text:sub(at, at)
    if byte == "" or byte == "\n" then
      if in_quotes then return nil, at end
      break
    elseif not in_quotes and (byte == ";" or byte == "#") then
      at = text:match("^[^\n]*()", at)
      break
    end
    local piece, next_at, quotes = value_piece(text, at, in_quotes)
    if not piece then return nil, text:match("^[^\n]*()", at) end
    out[#out + 1] = piece
    -- What quotes and escapes gave is kept; blanks at the end of plain text are not.
    local is_plain = not in_quotes and byte ~= "\\" and byte ~= '"'
    if not is_plain or piece:find("[^ \t\r]") then kept = #out end
    at, in_quotes = next_at, quotes
  end
  local last = out[kept]
  local text_of = table.concat(out, "", 1, kept)
  if last and last:find("[^ \t\r][ \t\r]+$") then text_of = text_of:gsub("[ \t\r]+$", "") end
  return text_of, at
end

local function add(out, header, name, value)
  local parts = { header.section, header.subsection, name:lower() }
  out[#out + 1] = {
    section = header.section, subsection = header.subsection, variable = name:lower(),
    key = header.subsection and table.concat(parts, ".") or header.section .. "." .. name:lower(),
    value = value,
  }
end

-- A variable at a place; the place after it.
local function read_variable(text, at, header, out)
  local name, next_at = text:match("^(%a[%w-]*)[ \t\r]*()", at)
  if not name then return text:match("^[^\n]*()", at) end
  local byte = text:sub(next_at, next_at)
  if byte == "=" then
    local value, stop = read_value(text, next_at + 1)
    if value and header then add(out, header, name, value) end
    return stop
  elseif byte == "\n" or byte == "" or byte == ";" or byte == "#" then
    if header then add(out, header, name, nil) end
  end
  return text:match("^[^\n]*()", next_at)
end

---The settings of a config, in their order.
---@param text string
---@return efr.sbx.GitSetting[]
function M.parse(text)
  text = text:gsub("^\239\187\191", ""):gsub("\r\n", "\n")
  local out, header, at = {}, nil, 1
  while at <= #text do
    at = text:match("^%s*()", at)
    local byte = text:sub(at, at)
    if byte == "[" then
      local section, subsection, next_at = read_header(text, at)
      header = section and { section = section, subsection = subsection }
      at = next_at or text:match("^[^\n]*()", at)
    elseif byte == "#" or byte == ";" then
      at = text:match("^[^\n]*()", at)
    elseif byte ~= "" then
      at = read_variable(text, at, header, out)
    end
  end
  return out
end

return M
