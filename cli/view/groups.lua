-- Groups of changed files: code, tests, docs, generated.
-- Owns: which group a path belongs to, and the order. Must not know: the settings file.
-- Pure; runs in `efr`.

local M = {}

---The groups in the order in which they are listed.
M.ORDER = { "code", "tests", "docs", "generated" }

-- The order in which they are tried: the first that fits counts.
local TRIED <const> = { "generated", "tests", "docs" }

-- A glob as a Lua pattern for "/" .. path.
local function pattern_of(glob)
  local body = glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*+", function(stars)
    return #stars > 1 and ".*" or "[^/]*"
  end):gsub("%?", "[^/]")
  return "/" .. body .. "$"
end

---The groups of the settings.
---@param globs table<string, string[]>  by group; a missing group has none
---@return table<string, string[]> compiled
function M.compile(globs)
  local out = {}
  for _, name in ipairs(TRIED) do
    out[name] = {}
    for i, glob in ipairs(globs[name] or {}) do
      out[name][i] = pattern_of(glob)
    end
  end
  return out
end

---The groups that the settings of a client name.
---@param config {get: fun(self: table, key: string): any}?  nil: none can be read
---@return table<string, string[]> compiled
function M.of_config(config)
  return M.compile(config and {
    generated = config:get("diff.groups.generated"), tests = config:get("diff.groups.tests"),
    docs = config:get("diff.groups.docs"),
  } or {})
end

---@param path string
---@param compiled table<string, string[]>
---@return string
function M.of(path, compiled)
  for _, name in ipairs(TRIED) do
    for _, pattern in ipairs(compiled[name]) do
      if ("/" .. path):find(pattern) then
        return name
      end
    end
  end
  return "code"
end

---The files by group, each group as it came.
---@param files {path: string}[]
---@param compiled table<string, string[]>
---@return table[]
function M.sort(files, compiled)
  local out = {}
  for _, group in ipairs(M.ORDER) do
    for _, file in ipairs(files) do
      if M.of(file.path, compiled) == group then
        out[#out + 1] = file
      end
    end
  end
  return out
end

---How many of each group, in words: "4 code, 3 tests"; nil when all are of one.
---@param files {path: string}[]
---@param compiled table<string, string[]>
---@return string?
function M.words(files, compiled)
  local counts, out = {}, {}
  for _, file in ipairs(files) do
    local group = M.of(file.path, compiled)
    counts[group] = (counts[group] or 0) + 1
  end
  for _, group in ipairs(M.ORDER) do
    if counts[group] then
      out[#out + 1] = ("%d %s"):format(counts[group], group)
    end
  end
  return #out > 1 and table.concat(out, ", ") or nil
end

return M
