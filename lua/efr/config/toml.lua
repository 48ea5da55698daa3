-- Owns: reading TOML 1.0 into Lua tables, with the byte range of everything that was read, so that
-- a writer can change a file and keep its comments.
-- Must not know: which keys efr has.
-- Runs in efrd and efr, on the loop thread. Pure.
--
-- Small LPeg patterns read the tokens; a descent in Lua puts them together, because that gives an
-- exact place for each error and a plain limit on depth. Nothing is read twice, so the work is
-- linear. Strings, integers, floats and booleans are Lua values, a date or time is a M.Datetime.

local lpeg = require "lpeg"
local lpegx = require "efr.util.lpegx"

local M = {}

local C, Cp, Ct, P, R, S = lpeg.C, lpeg.Cp, lpeg.Ct, lpeg.P, lpeg.R, lpeg.S

local MAX_BYTES <const> = 1024 * 1024
local MAX_DEPTH <const> = 64

---@class efr.TomlDatetime
---@field kind string  "offset_datetime", "local_datetime", "local_date" or "local_time"
---@field text string  as it stands in the file
local Datetime = {}
Datetime.__index = Datetime
Datetime.__name = "efr.TomlDatetime"
function Datetime.__tostring(self) return self.text end
M.Datetime = Datetime

local Array = { __name = "efr.TomlArray" }

---Whether a value that parse returned is an array (tables and arrays can both be empty).
---@param value any
---@return boolean
function M.is_array(value)
  return getmetatable(value) == Array
end

---Marks a table as an array, as those that parse returns are.
---@param t any[]
---@return any[] t
function M.array(t)
  return setmetatable(t, Array)
end

-- Tokens ---------------------------------------------------------------------------------------

local digit = R "09"
local bad_control = R("\0\8", "\10\31", "\127\127")
local blanks = S " \t" ^ 0 * Cp()
local newline = P "\r\n" + "\n"
local comment = "#" * (1 - bad_control) ^ 0
local rest_of_line = S " \t" ^ 0 * comment ^ -1 * Cp()
local gap = (S " \t" + newline + comment * #(newline + -1)) ^ 0 * Cp()
local bare_key = C((R("az", "AZ", "09") + S "_-") ^ 1) * Cp()
local basic_run = C((1 - bad_control - S '"\\') ^ 1) * Cp()
local literal = C((1 - bad_control - "'") ^ 0) * "'" * Cp()
local multi_basic_run = C((1 - bad_control - S '"\\' + newline) ^ 1) * Cp()
local multi_literal_run = C((1 - bad_control - "'" + newline) ^ 1) * Cp()
local line_continuation = S " \t" ^ 0 * newline * (S " \t" + newline) ^ 0 * Cp()

local hex = R("09", "af", "AF")
local escape = C(S 'btnfr"\\') * Cp() + C("u" * hex * hex * hex * hex) * Cp() +
  C("U" * hex * hex * hex * hex * hex * hex * hex * hex) * Cp()
local ESCAPES <const> = {
  b = "\b", t = "\t", n = "\n", f = "\f", r = "\r", ['"'] = '"', ["\\"] = "\\",
}

local function grouped(d)
  return d * (P "_" ^ -1 * d) ^ 0
end
local sign = S "+-" ^ -1
local decimal = sign * ("0" * -(P "_" ^ -1 * digit) + R "19" * (P "_" ^ -1 * digit) ^ 0)
local exponent = S "eE" * sign * grouped(digit)
local fraction = "." * grouped(digit)
local two, four = C(digit * digit), C(digit * digit * digit * digit)
local date = four * "-" * two * "-" * two
local clock = two * ":" * two * ":" * two * ("." * digit ^ 1) ^ -1
local offset = S "Zz" + S "+-" * two * ":" * two
local edge = -(R("az", "AZ", "09") + S "_+-.:")

local function token(name, pattern)
  return pattern * edge * Cp() * lpeg.Cc(name)
end
local scalar = token("offset_datetime", Ct(date * S "Tt " * clock * offset)) +
  token("local_datetime", Ct(date * S "Tt " * clock)) + token("local_date", Ct(date)) +
  token("local_time", Ct(clock)) +
  token("float", C(decimal * (fraction * exponent ^ -1 + exponent))) +
  token("special", C(sign * (P "inf" + "nan"))) + token("integer", C(decimal)) +
  token("hex", "0x" * C(grouped(hex))) + token("octal", "0o" * C(grouped(R "07"))) +
  token("binary", "0b" * C(grouped(S "01"))) + token("boolean", C(P "true" + "false"))

-- Reader ---------------------------------------------------------------------------------------

local Reader = {}
Reader.__index = Reader

-- Leaves the descent; parse turns it into an error value.
local function fail(pos, fmt, ...)
  error({ toml_pos = pos, message = fmt:format(...) }, 0)
end

function Reader:match(pattern, pos)
  return pattern:match(self.text, pos)
end

function Reader:at(pos, plain)
  return self.text:sub(pos, pos + #plain - 1) == plain
end

-- Names what stands at pos, for an error.
function Reader:seen(pos)
  if pos > #self.text then return "the end of the file" end
  local c = self.text:match("^[%g\x80-\xff]+", pos)
  if not c then
    return self.text:find("^\r?\n", pos) and "the end of the line" or "a control character"
  end
  local cut = utf8.offset(c, 21)
  return "'" .. (cut and c:sub(1, cut - 1) or c) .. "'"
end

function Reader:escape(pos)
  local name, after = self:match(escape, pos)
  if not name then fail(pos - 1, "unknown escape in a string") end
  local plain = ESCAPES[name]
  if plain then return plain, after end
  local code = tonumber(name:sub(2), 16)
  if code > 0x10FFFF or (code >= 0xD800 and code <= 0xDFFF) then
    fail(pos - 1, "an escape names no Unicode character")
  end
  return utf8.char(code), after
end

function Reader:basic_string(from)
  local out, pos = {}, from + 1
  while not self:at(pos, '"') do
    local run, after = self:match(basic_run, pos)
    if run then
      out[#out + 1], pos = run, after
    elseif self:at(pos, "\\") then
      out[#out + 1], pos = self:escape(pos + 1)
    else
      fail(pos, "a string has no closing quote before %s", self:seen(pos))
    end
  end
  return table.concat(out), pos + 1
end

function Reader:literal_string(from)
  local value, after = self:match(literal, from + 1)
  if not value then fail(from, "a literal string has no closing quote on its line") end
  return value, after
end

-- The quotes at pos: one or two belong to the text, three close it, and up to two before them
-- belong to the text as well. Returns the part of the text, the position after it, and closed.
function Reader:quotes(pos, quote)
  local _, last = self.text:find("^" .. quote .. "+", pos)
  local count = last - pos + 1
  if count < 3 then return quote:rep(count), last + 1, false end
  if count > 5 then fail(pos, "too many quotes") end
  return quote:rep(count - 3), last + 1, true
end

function Reader:multi_string(from, quote, run)
  local out, pos, closed = {}, from + 3, false
  pos = self:match(newline * Cp(), pos) or pos
  while not closed do
    local text, after = self:match(run, pos)
    if text then
      out[#out + 1], pos = text, after
    elseif self:at(pos, quote) then
      out[#out + 1], pos, closed = self:quotes(pos, quote)
    elseif self:at(pos, "\\") then
      local skipped = self:match(line_continuation, pos + 1)
      if skipped then
        pos = skipped
      else
        out[#out + 1], pos = self:escape(pos + 1)
      end
    else
      local at = pos > #self.text and from or pos
      fail(at, "a string is not closed or holds a control character")
    end
  end
  return table.concat(out), pos
end

function Reader:string(pos)
  if self:at(pos, '"""') then return self:multi_string(pos, '"', multi_basic_run) end
  if self:at(pos, "'''") then return self:multi_string(pos, "'", multi_literal_run) end
  if self:at(pos, '"') then return self:basic_string(pos) end
  return self:literal_string(pos)
end

-- One dotted key: its parts {name, from, to} and the position after it.
function Reader:key(pos)
  local parts = {}
  while true do
    local name, after = self:match(bare_key, pos)
    if not name then
      if self:at(pos, '"') then
        name, after = self:basic_string(pos)
      elseif self:at(pos, "'") then
        name, after = self:literal_string(pos)
      else
        fail(pos, "a key is expected, not %s", self:seen(pos))
      end
    end
    parts[#parts + 1] = { name = name, from = pos, to = after - 1 }
    if #parts > MAX_DEPTH then fail(pos, "a key with more than %d parts", MAX_DEPTH) end
    local dot = self:match(blanks, after)
    if not self:at(dot, ".") then return parts, after end
    pos = self:match(blanks, dot + 1)
  end
end

local DAYS <const> = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function date_ok(year, month, day)
  if month < 1 or month > 12 or day < 1 then return false end
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return day <= (month == 2 and leap and 29 or DAYS[month])
end

function Reader:datetime(kind, fields, pos, after)
  for i, field in ipairs(fields) do fields[i] = tonumber(field) end
  local ok, i = true, 1
  if kind ~= "local_time" then
    ok, i = date_ok(fields[1], fields[2], fields[3]), 4
  end
  if kind ~= "local_date" then
    ok = ok and fields[i] <= 23 and fields[i + 1] <= 59 and fields[i + 2] <= 60
    ok = ok and (fields[i + 3] or 0) <= 23 and (fields[i + 4] or 0) <= 59
  end
  if not ok then fail(pos, "there is no such date or time") end
  return setmetatable({ kind = kind, text = self.text:sub(pos, after - 1) }, Datetime)
end

local function based(digits, base, pos)
  local value = 0
  for d in digits:gmatch("%x") do
    if value > (math.maxinteger - tonumber(d, 16)) // base then
      fail(pos, "an integer is out of range")
    end
    value = value * base + tonumber(d, 16)
  end
  return value
end

local SCALARS <const> = {
  boolean = function(text) return text == "true" end,
  hex = function(text, pos) return based(text, 16, pos) end,
  octal = function(text, pos) return based(text, 8, pos) end,
  binary = function(text, pos) return based(text, 2, pos) end,
  float = function(text) return tonumber((text:gsub("[_+]", ""))) end,
  special = function(text)
    if text:find("nan") then return 0.0 / 0.0 end
    return text:sub(1, 1) == "-" and -math.huge or math.huge
  end,
  integer = function(text, pos)
    local value = math.tointeger((text:gsub("[_+]", "")))
    if not value then fail(pos, "an integer is out of range") end
    return value
  end,
}

function Reader:scalar(pos)
  local raw, after, kind = self:match(scalar, pos)
  if not raw then fail(pos, "a value is expected, not %s", self:seen(pos)) end
  if type(raw) == "table" then return self:datetime(kind, raw, pos, after), after end
  return SCALARS[kind](raw, pos), after
end

function Reader:array(from, depth)
  local out = setmetatable({}, Array)
  self.how[out], self.where[out] = "array", {}
  local pos = self:match(gap, from + 1)
  while not self:at(pos, "]") do
    local value, after = self:value(pos, depth + 1)
    out[#out + 1] = value
    self.where[out][#out] = { from = pos, to = after - 1 }
    pos = self:match(gap, after)
    if self:at(pos, ",") then
      pos = self:match(gap, pos + 1)
    elseif not self:at(pos, "]") then
      fail(pos, "an array needs ',' or ']', not %s", self:seen(pos))
    end
  end
  return out, pos + 1
end

-- Tables that dotted keys made inside belong to it and are closed with it.
local function seal(how, t)
  how[t] = "inline"
  for _, value in pairs(t) do
    if how[value] == "dotted" then seal(how, value) end
  end
end

function Reader:inline_table(from, depth)
  local out = self:new_table("open")
  local pos = self:match(blanks, from + 1)
  while not self:at(pos, "}") do
    pos = self:match(blanks, self:pair(out, pos, depth + 1))
    if self:at(pos, ",") then
      pos = self:match(blanks, pos + 1)
      if self:at(pos, "}") then fail(pos, "an inline table cannot end in ','") end
    elseif not self:at(pos, "}") then
      fail(pos, "an inline table needs ',' or '}' on its line, not %s", self:seen(pos))
    end
  end
  seal(self.how, out)
  return out, pos + 1
end

function Reader:value(pos, depth)
  if depth > MAX_DEPTH then fail(pos, "values are nested deeper than %d", MAX_DEPTH) end
  local first = self.text:sub(pos, pos)
  if first == '"' or first == "'" then return self:string(pos) end
  if first == "[" then return self:array(pos, depth) end
  if first == "{" then return self:inline_table(pos, depth) end
  return self:scalar(pos)
end

-- Tables ---------------------------------------------------------------------------------------

-- How a table came to be decides what may still be added to it:
--   root, header   by [name]: keys, and tables by later headers
--   implicit       on the way of a header: may still be defined by its own header
--   dotted         by a dotted key: no header may define it again
--   open, inline   in braces: complete when the brace closes
--   tables, array  [[name]] and [value, ...]
function Reader:new_table(how)
  local t = {}
  self.how[t], self.where[t] = how, {}
  return t
end

local function joined(parts, count)
  local names = {}
  for i = 1, count or #parts do names[i] = parts[i].name end
  return table.concat(names, ".")
end

-- Goes into the part of a dotted key that is not its last.
function Reader:enter_dotted(t, parts, i)
  local part = parts[i]
  local next_table = t[part.name]
  if next_table == nil then
    next_table = self:new_table("dotted")
    t[part.name] = next_table
    self.where[t][part.name] = part
    return next_table
  end
  local how = self.how[next_table]
  if how == "implicit" then self.how[next_table] = "dotted" end
  if how ~= "dotted" and how ~= "implicit" then
    fail(part.from, "'%s' cannot be extended here", joined(parts, i))
  end
  return next_table
end

function Reader:pair(t, from, depth)
  local parts, pos = self:key(from)
  pos = self:match(blanks, pos)
  if not self:at(pos, "=") then fail(pos, "'=' is expected, not %s", self:seen(pos)) end
  for i = 1, #parts - 1 do t = self:enter_dotted(t, parts, i) end
  local last = parts[#parts]
  if t[last.name] ~= nil then fail(last.from, "'%s' is given twice", joined(parts)) end
  local value_from = self:match(blanks, pos + 1)
  local value, after = self:value(value_from, depth)
  t[last.name] = value
  self.where[t][last.name] = {
    key_from = from, key_to = parts[#parts].to, from = value_from, to = after - 1,
  }
  return after
end

function Reader:enter_header(t, parts, i)
  local part = parts[i]
  local next_table = t[part.name]
  if next_table == nil then
    next_table = self:new_table("implicit")
    t[part.name] = next_table
    self.where[t][part.name] = part
  end
  local how = self.how[next_table]
  if how == "tables" then return next_table[#next_table] end
  if how == nil or how == "inline" or how == "array" then
    fail(part.from, "'%s' is no table that a header can extend", joined(parts, i))
  end
  return next_table
end

function Reader:define(t, part, parts)
  local old = t[part.name]
  if old == nil then
    old = self:new_table("header")
    t[part.name] = old
  elseif self.how[old] == "implicit" then
    self.how[old] = "header"
  else
    fail(part.from, "'%s' is given twice", joined(parts))
  end
  self.where[t][part.name] = part
  return old
end

function Reader:append(t, part, parts)
  local tables = t[part.name]
  if tables == nil then
    tables = setmetatable({}, Array)
    self.how[tables], self.where[tables] = "tables", {}
    t[part.name] = tables
    self.where[t][part.name] = part
  elseif self.how[tables] ~= "tables" then
    fail(part.from, "'%s' is no array of tables", joined(parts))
  end
  local out = self:new_table("header")
  tables[#tables + 1] = out
  self.where[tables][#tables] = part
  return out
end

function Reader:header(from)
  local array = self:at(from, "[[")
  local parts, pos = self:key(self:match(blanks, from + (array and 2 or 1)))
  pos = self:match(blanks, pos)
  local close = array and "]]" or "]"
  if not self:at(pos, close) then
    fail(pos, "'%s' is expected, not %s", close, self:seen(pos))
  end
  local t = self.root
  for i = 1, #parts - 1 do t = self:enter_header(t, parts, i) end
  t = (array and self.append or self.define)(self, t, parts[#parts], parts)
  pos = pos + #close
  self.headers[#self.headers + 1] = {
    path = joined(parts), depth = #parts, array = array, from = from, to = pos - 1, table = t,
  }
  return t, pos
end

function Reader:document()
  local current, pos = self.root, self:at(1, "\xEF\xBB\xBF") and 4 or 1
  while true do
    pos = self:match(gap, pos)
    if pos > #self.text then return end
    if self:at(pos, "[") then
      current, pos = self:header(pos)
    elseif self:at(pos, "#") then
      fail(pos, "a comment holds a control character")
    else
      pos = self:pair(current, pos, 1)
    end
    pos = self:match(rest_of_line, pos)
    if pos <= #self.text and not self:match(newline, pos) then
      fail(pos, "the line goes on with %s", self:seen(pos))
    end
  end
end

---@class efr.TomlDocument
---@field where table<table, table<any, table>>  for each table and key or index: {from, to} of the
---  value, and {key_from, key_to} of a key; of a table that a header opened: {from, to} of its name
---@field headers table[]  {path, depth (parts of the path), array, from, to, table} in file order
---@field how table<table, string>  how each table came to be: see new_table

---Reads TOML 1.0. Every error names line and column.
---@param text string
---@return table? root
---@return efr.TomlDocument|string document  the error text on failure
---@return { line: integer, column: integer }? place  only on failure
function M.parse(text)
  local function failed(pos, message)
    local line, column = lpegx.line_column(text, pos)
    local err = ("line %d column %d: %s"):format(line, column, message)
    return nil, err, { line = line, column = column }
  end
  if #text > MAX_BYTES then return failed(1, "more than " .. MAX_BYTES .. " bytes") end
  local _, bad = utf8.len(text)
  if bad then return failed(bad, "a byte that is no UTF-8") end
  local reader = setmetatable({ text = text, how = {}, where = {}, headers = {} }, Reader)
  reader.root = reader:new_table("root")
  local ok, err = pcall(reader.document, reader)
  if ok then
    return reader.root, { where = reader.where, headers = reader.headers, how = reader.how }
  end
  if type(err) ~= "table" or not err.toml_pos then error(err, 0) end
  return failed(err.toml_pos, err.message)
end

return M
