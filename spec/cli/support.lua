-- What the specs of the client share: a readable form of rows, golden files. These specs need
-- efr.text, so they run under efr-lua.

local M = {}

M.root = (os.getenv("EFR_SOURCE") or ".") .. "/"

--- Rows as text with their roles: {role:words}.
function M.dump(list)
  local out = {}
  for i, row in ipairs(list) do
    local parts = {}
    for k, span in ipairs(row) do
      local marks = { span[2] }
      for _, field in ipairs({ "bold", "italic", "underline", "strike" }) do
        marks[#marks + 1] = span[3] and span[3][field] and field or nil
      end
      local link = span[3] and span[3].link
      marks[#marks + 1] = link and "<" .. link .. ">"
      local words = table.concat(marks, "+")
      parts[k] = words ~= "" and ("{%s:%s}"):format(words, span[1]) or span[1]
    end
    out[i] = table.concat(parts)
  end
  return table.concat(out, "\n") .. (#out > 0 and "\n" or "")
end

--- Compares with a golden file; EFR_UPDATE_GOLDEN=1 writes it.
function M.golden(path, got)
  local file = M.root .. "tests/golden/" .. path
  if os.getenv("EFR_UPDATE_GOLDEN") then
    local f = assert(io.open(file, "w"))
    f:write(got)
    f:close()
    return got
  end
  local f = assert(io.open(file, "r"))
  local want = f:read("a")
  f:close()
  return want
end

return M
