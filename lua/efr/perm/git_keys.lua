-- Owns: reading the listing of a git config (`git config --list -z`), and which of its keys make
-- git run a program.
-- Must not know: where a config lies or who lists it. Runs in efrd. Pure.
--
-- Policy: the bytes were chosen by whoever wrote the config, so a listing is cut at NUL bytes and
-- its first newline only, and bounded; what has no key is no listing.

local data = require "efr.perm.data.git_keys"

local M = {}

M.MAX_ENTRIES = 20000 ---@type integer

---@class efr.GitEntry
---@field key string  as git lists it
---@field value string?  nil: the key stands without a value, which means true

---The entries of a listing, in their order.
---@param bytes string  each `key\nvalue` or `key`, ended by NUL
---@return efr.GitEntry[]?
---@return string? err
function M.parse(bytes)
  if bytes ~= "" and bytes:sub(-1) ~= "\0" then return nil, "the listing is cut off" end
  local out = {}
  for item in bytes:gmatch("([^\0]*)\0") do
    local key, value = item:match("^([^\n]*)\n(.*)$")
    key = key or item
    if key == "" then return nil, "the listing has an entry without a key" end
    if #out >= M.MAX_ENTRIES then return nil, "the listing has too many entries" end
    out[#out + 1] = { key = key, value = value }
  end
  return out
end

---The parts of a key: `remote.a.b.url` is "remote", "a.b", "url".
---@param key string
---@return string section
---@return string? subsection
---@return string variable
function M.split(key)
  local section, rest = key:match("^([^.]*)%.(.*)$")
  if not section then return key:lower(), nil, "" end
  local subsection, variable = rest:match("^(.*)%.([^.]*)$")
  return section:lower(), subsection, (variable or rest):lower()
end

local function rule_of(key)
  local section, subsection, variable = M.split(key)
  local name = section .. "." .. variable
  return data.sections[section] or subsection and data.any_subsection[name]
    or not subsection and data.plain[name] or nil
end

---Whether git may run a program because of this entry.
---@param entry efr.GitEntry
---@return boolean
function M.runs_code(entry)
  local rule = rule_of(entry.key)
  if not rule then return false end
  local value = entry.value or "true"
  if rule.unless and rule.unless[value:lower()] then return false end
  return not rule.matches or value:find(rule.matches) ~= nil
end

---The entries that make git run a program, in their order.
---@param entries efr.GitEntry[]
---@return efr.GitEntry[]
function M.code(entries)
  local out = {}
  for _, entry in ipairs(entries) do
    if M.runs_code(entry) then out[#out + 1] = entry end
  end
  return out
end

return M
