-- Groups of changed files: code, tests, docs, generated.
-- Owns: which group a path belongs to, and the order. Pure; runs in `efr`.

local M = {}

---The groups in the order in which they are listed.
M.ORDER = { "code", "tests", "docs", "generated" }

-- The first group that matches counts.
local PATTERNS <const> = {
  { "generated", { "%.lock$", "package%-lock%.json$", "%.min%.js$", "^dist/", "/dist/",
    "_pb2%.py$" } },
  { "tests", { "^tests?/", "/tests?/", "^spec/", "/spec/", "_test%.[^/]*$", "%.test%.[^/]*$",
    "_spec%.[^/]*$" } },
  { "docs", { "^docs/", "/docs/", "%.md$", "%.rst$", "%.txt$" } },
}

---@param path string
---@return string
function M.of(path)
  for _, group in ipairs(PATTERNS) do
    for _, pattern in ipairs(group[2]) do
      if path:find(pattern) then
        return group[1]
      end
    end
  end
  return "code"
end

---The files by group, each group as it came.
---@param files {path: string}[]
---@return table[]
function M.sort(files)
  local out = {}
  for _, group in ipairs(M.ORDER) do
    for _, file in ipairs(files) do
      if M.of(file.path) == group then
        out[#out + 1] = file
      end
    end
  end
  return out
end

---How many of each group, in words: "4 code, 3 tests"; nil when all are of one.
---@param files {path: string}[]
---@return string?
function M.words(files)
  local counts, out = {}, {}
  for _, file in ipairs(files) do
    local group = M.of(file.path)
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
