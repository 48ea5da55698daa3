-- Owns: which files run code later (`sandbox.surface_files`), and what in one of them does.
-- Must not know: the disk, when a file is looked at. Runs in efrd. Pure but for the JSON port.
--
-- Policy: a pattern without a slash is a name in any directory; one with slashes is the end of a
-- path. `*` stands for any characters of one name. What a file holds was chosen by a command: it is
-- read with limits, and what cannot be read has no detail.

local toml = require "efr.config.toml"

local M = {}

M.MAX_BYTES = 64 * 1024 ---@type integer

local function to_pattern(glob)
  return (glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", "[^/]*"):gsub("%?", "[^/]"))
end

-- Whether a path ends in the components of a pattern.
local function ends_with(path, pattern)
  return ("/" .. path):find("/" .. pattern .. "$") ~= nil
end

---@param patterns string[]
---@return fun(path: string): boolean  whether a path is one of such a file
function M.matcher(patterns)
  local names, globs, paths = {}, {}, {}
  for _, pattern in ipairs(patterns) do
    local above, name = pattern:match("^(.*)/([^/]*)$")
    name = name or pattern
    if name:find("[*?]") then
      globs[#globs + 1] = { name = "^" .. to_pattern(name) .. "$", path = to_pattern(pattern) }
    elseif above then
      paths[name] = paths[name] or {}
      table.insert(paths[name], to_pattern(pattern))
    else
      names[name] = true
    end
  end
  return function(path)
    local name = path:match("[^/]*$")
    if names[name] then return true end
    for _, pattern in ipairs(paths[name] or {}) do
      if ends_with(path, pattern) then return true end
    end
    for _, glob in ipairs(globs) do
      if name:find(glob.name) and ends_with(path, glob.path) then return true end
    end
    return false
  end
end

-- package.json ------------------------------------------------------------------------------------

local function scripts_of(bytes, json)
  local value = json.decode(bytes, { max_depth = 32 })
  local scripts = type(value) == "table" and value.scripts
  if type(scripts) ~= "table" or next(scripts) == nil then return nil end
  return scripts
end

local function same_scripts(a, b)
  for name, line in pairs(a) do
    if type(line) ~= "string" or b[name] ~= line then return false end
  end
  for name in pairs(b) do
    if a[name] == nil then return false end
  end
  return true
end

local function package_detail(before, after, json)
  local scripts = scripts_of(after, json)
  if not scripts then return nil end
  local old = before and scripts_of(before, json)
  return not (old and same_scripts(scripts, old)) and "scripts" or nil
end

-- .cargo/config.toml ------------------------------------------------------------------------------

-- Keys as paths; "*" is any name.
local CARGO <const> = {
  { "build", "rustc-wrapper" }, { "build", "rustc-workspace-wrapper" },
  { "target", "*", "runner" }, { "target", "*", "linker" }, { "host", "linker" },
  { "host", "*", "linker" }, { "source", "*", "replace-with" },
}

local function flat(value)
  if type(value) ~= "table" then return tostring(value) end
  local out = {}
  for name, item in pairs(value) do out[#out + 1] = tostring(name) .. "=" .. flat(item) end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

local function find_keys(value, path, at, name, out)
  if at > #path then
    out[name] = flat(value)
    return
  end
  if type(value) ~= "table" then return end
  local wanted = path[at]
  for key, item in pairs(value) do
    if type(key) == "string" and (wanted == "*" or key == wanted) then
      find_keys(item, path, at + 1, name and name .. "." .. key or key, out)
    end
  end
end

local function cargo_keys(bytes)
  local out, value = {}, toml.parse(bytes)
  for _, path in ipairs(value and CARGO or {}) do find_keys(value, path, 1, nil, out) end
  return out
end

local function cargo_detail(before, after)
  local found, old, names = cargo_keys(after), before and cargo_keys(before) or {}, {}
  for name, value in pairs(found) do
    if old[name] ~= value then names[#names + 1] = name end
  end
  table.sort(names)
  return #names > 0 and table.concat(names, ", ") or nil
end

---What in a changed file runs code later, in words.
---@param path string
---@param before string?  its bytes then, if they are known
---@param after string?  its bytes now
---@param json table  port efr.json
---@return string? detail
function M.detail(path, before, after, json)
  if not after then return nil end
  if path:find("/package%.json$") then return package_detail(before, after, json) end
  if path:find("/%.cargo/config$") or path:find("/%.cargo/config%.toml$") then
    return cargo_detail(before, after)
  end
  return nil
end

return M
