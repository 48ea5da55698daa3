-- Helpers of the lint scripts: files of the source tree and one place for findings. Not a lint
-- itself.
local M = {}

M.root = os.getenv("EFR_SOURCE") or "."

---Runs a command in the source tree and gives its lines.
function M.lines(command)
  local pipe = assert(io.popen("cd '" .. M.root .. "' && " .. command))
  local list = {}
  for line in pipe:lines() do
    list[#list + 1] = line
  end
  return list, pipe:close()
end

---Files below folders that exist, by the end of their names, sorted.
function M.files(folders, ending)
  local list = {}
  for _, folder in ipairs(folders) do
    local found = M.lines(
      "[ ! -d " .. folder .. " ] || find " .. folder .. " -name '*" .. ending .. "' | sort"
    )
    table.move(found, 1, #found, #list + 1, list)
  end
  return list
end

function M.read(path)
  local file = assert(io.open(M.root .. "/" .. path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local findings = 0

---Reports one finding as FILE:LINE: TEXT.
function M.report(path, line, text)
  findings = findings + 1
  print(("%s:%s: %s"):format(path, line or 1, text))
end

---Ends the script: the exit code says whether there were findings.
function M.finish(name)
  if findings > 0 then
    print(("%s: %d findings"):format(name, findings))
    os.exit(1)
  end
  print(name .. ": no findings")
end

return M
