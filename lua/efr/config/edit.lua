-- Owns: changing one key, or one entry of an array of tables, in the text of a TOML file.
-- Must not know: which keys efr has, the disk.
-- Runs in efrd and efr. Pure.
--
-- Policy: the file is the user's. A change touches the lines of its key and no other byte:
-- comments, order, layout and line ends stay. What a set added, an unset takes away without a
-- trace. Each result is read again and must hold exactly the value that was asked for and all
-- others as they were; a layout that does not allow that is refused (EFR_LAYOUT), never half
-- changed.
--
-- Where a new key goes: after its own commented-out line (`#name = ...`), else after the last key
-- of its section, else below the header, else into a new section at the end.

local edit_list = require "efr.config.edit_list"
local lines = require "efr.config.lines"
local list = require "efr.util.list"
local toml = require "efr.config.toml"

local M = {}

local function refuse(fmt, ...)
  return nil, fmt:format(...), "EFR_LAYOUT"
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b and math.type(a) == math.type(b) or a ~= a and b ~= b
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local function split(name)
  local parts = {}
  for part in name:gmatch("[^.]+") do parts[#parts + 1] = part end
  return parts
end

-- What is known of the file while it is changed.
local function open(text, name)
  local root, document, place = toml.parse(text)
  if not root then return nil, document, "EFR_CONFIG", place end
  local self = {
    text = text, root = root, where = document.where, how = document.how,
    headers = document.headers, parts = split(name), name = name,
  }
  self.key = self.parts[#self.parts]
  local section = root
  for i = 1, #self.parts - 1 do
    section = section and section[self.parts[i]]
    local plain = type(section) ~= "table" or toml.is_array(section)
      or not document.where[section] -- a date is a table of the reader's
    if section ~= nil and plain then
      return refuse("%s is no table", table.concat(self.parts, ".", 1, i))
    end
  end
  self.section = section
  self.entry = section and document.where[section][self.key]
  return self
end

-- The values without tables that hold nothing: an empty section says nothing.
local function without_empty(t)
  local out = {}
  for key, value in pairs(t) do
    if type(value) == "table" and getmetatable(value) == nil then
      value = without_empty(value)
      if next(value) == nil then value = nil end
    end
    out[key] = value
  end
  return out
end

-- A value of a caller in the form in which the reader gives it: sequences are marked as arrays.
local function marked(value)
  if type(value) ~= "table" or getmetatable(value) ~= nil then return value end
  local out = {}
  for key, item in pairs(value) do out[key] = marked(item) end
  return (#out > 0 or next(out) == nil) and toml.array(out) or out
end

-- The result must read as the old file with this one difference.
local function verified(self, text, value)
  local fresh = toml.parse(text)
  local section = self.root
  for i = 1, #self.parts - 1 do
    local name = self.parts[i]
    if section[name] == nil then section[name] = {} end
    section = section[name]
  end
  section[self.key] = marked(value)
  if fresh and same(without_empty(self.root), without_empty(fresh)) then return text end
  return refuse("%s cannot be changed without touching the rest of the file; use an editor",
    self.name)
end

-- Pairs ----------------------------------------------------------------------------------------

-- The pairs of a table that stand in the file between two places, in their order; those of tables
-- that dotted keys made are among them.
local function pairs_of(self, t, from, to, out)
  out = out or {}
  for name, entry in pairs(self.where[t] or {}) do
    if entry.key_from then
      if entry.key_from >= from and entry.to <= to then out[#out + 1] = entry end
    elseif type(t[name]) == "table" and self.how[t[name]] == "dotted" then
      pairs_of(self, t[name], from, to, out)
    end
  end
  table.sort(out, function(a, b) return a.key_from < b.key_from end)
  return out
end

-- The lines below a header (nil: those before the first one) up to the next header's line.
local function region(self, header)
  local from = header and lines.after(self.text, header.to) or lines.body(self.text)
  for _, other in ipairs(self.headers) do
    if other.from >= from then return from, lines.first(self.text, other.from) end
  end
  return from, #self.text + 1
end

local function header_of(self, t)
  for _, header in ipairs(self.headers) do
    if header.table == t then return header end
  end
  return nil
end

-- The start of a line that has the key in a comment, outside of every value.
local function commented(self, from, to, known)
  local pattern = "^[ \t]*#[ \t]*" .. self.key:gsub("%p", "%%%0") .. "[ \t]*="
  local at = from
  while at < to do
    local pair = list.filter(known, function(entry) return entry.from <= at and at <= entry.to end)
    if not pair[1] and lines.line(self.text, at):find(pattern) then return at end
    at = lines.after(self.text, at)
  end
  return nil
end

-- Set ------------------------------------------------------------------------------------------

local function spliced(text, entry, written)
  return text:sub(1, entry.from - 1) .. written .. text:sub(entry.to + 1)
end

-- An array of several lines is changed item by item: what is gone goes, what is new comes last.
local function set_items(self, old, value)
  local text, kept = self.text, 0
  local gone = {}
  for i, item in ipairs(old) do
    if same(item, value[kept + 1]) then kept = kept + 1 else gone[#gone + 1] = i end
  end
  local function again()
    local fresh = open(text, self.name)
    local array = fresh and fresh.section[fresh.key]
    return array and fresh.where[array], array and fresh.entry
  end
  for i = #gone, 1, -1 do
    local places, entry = again()
    if not places then return nil end
    text = edit_list.remove(text, places, entry, gone[i])
  end
  for i = kept + 1, #value do
    local places, entry = again()
    if not places then return nil end
    text = edit_list.append(text, places, entry, lines.value(value[i]))
  end
  return text
end

local function replace(self, value)
  local entry, old = self.entry, self.section[self.key]
  if not entry.key_from then return refuse("%s is a table; use an editor", self.name) end
  if same(old, value) then return self.text end
  if toml.is_array(old) and type(value) == "table" and
    self.text:sub(entry.from, entry.to):find("\n", 1, true) then
    return set_items(self, old, value) or ""
  end
  return spliced(self.text, entry, lines.value(value))
end

local function pair_text(self, depth, value)
  local names = {}
  for i = depth + 1, #self.parts do names[#names + 1] = lines.key(self.parts[i]) end
  return table.concat(names, ".") .. " = " .. lines.value(value)
end

local function insert_inline(self, entry, value)
  local inside = pairs_of(self, self.section, entry.from, entry.to)
  local pair = pair_text(self, #self.parts - 1, value)
  local text = self.text
  if #inside > 0 then
    local last = inside[#inside]
    return text:sub(1, last.to) .. ", " .. pair .. text:sub(last.to + 1)
  end
  local blank = text:sub(entry.from + 1, entry.to - 1)
  return text:sub(1, entry.to - 1) .. pair .. blank .. text:sub(entry.to)
end

local function insert_dotted(self, value)
  local inside = pairs_of(self, self.section, 1, #self.text)
  local last, depth = inside[#inside], 0
  for _, header in ipairs(self.headers) do
    if header.from < last.key_from then depth = header.depth end
  end
  return lines.insert(self.text, lines.after(self.text, last.to), pair_text(self, depth, value))
end

-- Whether nothing but the header stands in a section.
local function is_bare(self, header, from, to)
  return lines.line(self.text, lines.first(self.text, header.from)):find("%][ \t]*$") ~= nil
    and not self.text:sub(from, to - 1):find("%S")
end

-- Below a header. In a section that had nothing a blank line goes first: unset then leaves the
-- header, which is not ours.
local function insert_below(self, header, value)
  local from, to = region(self, header)
  local known = pairs_of(self, self.section, from, to)
  local pair = pair_text(self, header.depth, value)
  local at = commented(self, from, to, known)
  if at then return lines.insert(self.text, lines.after(self.text, at), pair) end
  if #known > 0 then
    return lines.insert(self.text, lines.after(self.text, known[#known].to), pair)
  end
  if is_bare(self, header, from, to) then pair = "\n" .. pair end
  return lines.insert(self.text, from, pair)
end

-- Before the first header and the comment that belongs to it.
local function insert_top(self, value)
  local from, to = region(self, nil)
  local known = pairs_of(self, self.root, from, to)
  local pair = pair_text(self, 0, value)
  local at = commented(self, from, to, known)
  if at then return lines.insert(self.text, lines.after(self.text, at), pair) end
  if #known > 0 then
    return lines.insert(self.text, lines.after(self.text, known[#known].to), pair)
  end
  if #self.headers == 0 then return lines.insert(self.text, #self.text + 1, pair) end
  local above = lines.above(self.text, to)
  while above and lines.line(self.text, above):find("^[ \t]*#") do
    to, above = above, lines.above(self.text, above)
  end
  return lines.insert(self.text, to, pair .. "\n")
end

local function block_at_end(text, block)
  local gap = #text < lines.body(text) and "" or "\n"
  return lines.insert(text, #text + 1, gap .. block)
end

local function insert_section(self, value)
  local names = {}
  for i = 1, #self.parts - 1 do names[i] = lines.key(self.parts[i]) end
  return block_at_end(self.text, ("[%s]\n%s"):format(table.concat(names, "."),
    pair_text(self, #self.parts - 1, value)))
end

local function insert(self, value)
  if #self.parts == 1 then return insert_top(self, value) end
  local section = self.section
  if section == nil then return insert_section(self, value) end
  local header = header_of(self, section)
  if header then return insert_below(self, header, value) end
  local how = self.how[section]
  if how == "dotted" then return insert_dotted(self, value) end
  if how == "implicit" then return insert_section(self, value) end
  local parent = self.root
  for i = 1, #self.parts - 2 do parent = parent[self.parts[i]] end
  return insert_inline(self, self.where[parent][self.parts[#self.parts - 1]], value)
end

---Sets one key.
---@param text string
---@param name string  such as "permissions.mode"
---@param value any  string, number, boolean, or a list of them
---@return string? text  the new file
---@return string? err
---@return string? code  "EFR_CONFIG" (the file is no TOML) or "EFR_LAYOUT"
function M.set(text, name, value)
  local self, err, code = open(text, name)
  if not self then return nil, err, code end
  local fresh, why, which
  if self.entry then
    fresh, why, which = replace(self, value)
  else
    fresh, why, which = insert(self, value)
  end
  if not fresh then return nil, why, which end
  return verified(self, fresh, value)
end

-- Unset ----------------------------------------------------------------------------------------

local function cut_inline(self, holder)
  local entry = self.entry
  local inside = pairs_of(self, self.section, holder.from, holder.to)
  local text = self.text
  if #inside == 1 then
    local before = text:sub(holder.from + 1, entry.key_from - 1)
    return text:sub(1, holder.from) .. before .. text:sub(holder.to)
  end
  for i, other in ipairs(inside) do
    if other.key_from == entry.key_from then
      local last, following = inside[i - 1], inside[i + 1]
      if last then return text:sub(1, last.to) .. text:sub(entry.to + 1) end
      return text:sub(1, entry.key_from - 1) .. text:sub(following.key_from)
    end
  end
  return nil
end

-- A section that would be left with nothing goes as well, with the blank line before it. One that
-- had nothing before the key came (a blank line stands between) stays.
local function cut_below(self, header)
  local entry, text = self.entry, self.text
  local from, to = region(self, header)
  local first = lines.first(text, header.from)
  local before = text:sub(from, lines.first(text, entry.key_from) - 1)
  local empty = #pairs_of(self, self.section, from, to) == 1
    and not text:sub(lines.after(text, entry.to), to - 1):find("%S")
    and lines.line(text, first):find("%][ \t]*$")
  if empty and before:find("^[ \t]*\r?\n$") then
    return (lines.cut(text, from, entry.to))
  end
  local above = lines.above(text, first)
  if not empty or before ~= "" or above and not lines.is_blank(text, above) then
    return (lines.cut(text, entry.key_from, entry.to))
  end
  return (lines.cut(text, above or first, entry.to))
end

local function cut_top(self)
  local text, entry = self.text, self.entry
  local from, to = region(self, nil)
  local fresh, at = lines.cut(text, entry.key_from, entry.to)
  local above = lines.above(text, lines.first(text, entry.key_from))
  if #pairs_of(self, self.root, from, to) == 1 and #self.headers > 0 and
    (not above or lines.is_blank(text, above)) and at <= #fresh and lines.is_blank(fresh, at) then
    return (lines.cut(fresh, at, at))
  end
  return fresh
end

local function cut_tables(self)
  local text = self.text
  for i = #self.section[self.key], 1, -1 do
    local err, code
    text, err, code = M.remove_entry(text, self.name, i)
    if not text then return nil, err, code end
  end
  return text
end

---Takes one key out. A key that is not there is no error.
---@param text string
---@param name string
---@return string? text
---@return string? err
---@return string? code
function M.unset(text, name)
  local self, err, code = open(text, name)
  if not self then return nil, err, code end
  local fresh
  if not self.entry then
    return text
  elseif not self.entry.key_from then
    if self.how[self.section[self.key]] ~= "tables" then
      return refuse("%s is a table; use an editor", name)
    end
    fresh, err, code = cut_tables(self)
    if not fresh then return nil, err, code end
  else
    local header = header_of(self, self.section)
    local how = self.how[self.section]
    if #self.parts == 1 then
      fresh = cut_top(self)
    elseif header then
      fresh = cut_below(self, header)
    elseif how == "dotted" then
      fresh = lines.cut(text, self.entry.key_from, self.entry.to)
    else
      local parent = self.root
      for i = 1, #self.parts - 2 do parent = parent[self.parts[i]] end
      fresh = cut_inline(self, self.where[parent][self.parts[#self.parts - 1]])
    end
  end
  return verified(self, fresh, nil)
end

-- Entries of arrays of tables --------------------------------------------------------------------

-- The header of entry i and the byte after the lines of its last value; headers below it included.
local function entry_lines(self, tables, i)
  for n, header in ipairs(self.headers) do
    if header.table == tables[i] then
      local below, last = header.path .. ".", header.to
      repeat
        local known = pairs_of(self, self.headers[n].table, 1, #self.text)
        last = math.max(last, self.headers[n].to, known[1] and known[#known].to or 0)
        n = n + 1
      until not self.headers[n] or self.headers[n].path:sub(1, #below) ~= below
      return header.from, last
    end
  end
  return nil
end

---Adds an entry after the last one, or at the end of the file.
---@param text string
---@param name string  of the array of tables, such as "permissions.rules"
---@param fields { [1]: string, [2]: any }[]  key and value, in the order in which they are written
---@return string? text
---@return string? err
---@return string? code
function M.add_entry(text, name, fields)
  local self, err, code = open(text, name)
  if not self then return nil, err, code end
  local tables, entry = self.section and self.section[self.key], {}
  local written = { ("[[%s]]"):format(table.concat(list.map(self.parts, lines.key), ".")) }
  for _, field in ipairs(fields) do
    entry[field[1]] = field[2]
    written[#written + 1] = lines.key(field[1]) .. " = " .. lines.value(field[2])
  end
  local block = table.concat(written, "\n")
  local fresh
  if tables == nil then
    fresh, tables = block_at_end(text, block), {}
  elseif self.how[tables] == "tables" then
    local _, last = entry_lines(self, tables, #tables)
    fresh = lines.insert(text, lines.after(text, last), "\n" .. block)
  elseif toml.is_array(tables) then
    fresh = edit_list.append(text, self.where[tables], self.entry, lines.value(entry))
  else
    return refuse("%s is no array of tables", name)
  end
  local all = list.copy(tables)
  all[#all + 1] = entry
  return verified(self, fresh, all)
end

---Takes entry i (from 1) out.
---@param text string
---@param name string
---@param i integer
---@return string? text
---@return string? err
---@return string? code
function M.remove_entry(text, name, i)
  local self, err, code = open(text, name)
  if not self then return nil, err, code end
  local tables = self.section and self.section[self.key]
  if not toml.is_array(tables) or not tables[i] then
    return refuse("%s has no entry %d", name, i)
  end
  local fresh
  if self.how[tables] == "tables" then
    local from, to = entry_lines(self, tables, i)
    local first = lines.first(text, from)
    local above, after = lines.above(text, first), lines.after(text, to)
    if above and lines.is_blank(text, above) then
      first = above
    elseif above and after <= #text and lines.is_blank(text, after) then
      to = after
    end
    fresh = lines.cut(text, first, to)
  else
    fresh = edit_list.remove(text, self.where[tables], self.entry, i)
  end
  local all = list.copy(tables)
  table.remove(all, i)
  local gone = #all == 0 and self.how[tables] == "tables"
  return verified(self, fresh, not gone and all or nil)
end

return M
