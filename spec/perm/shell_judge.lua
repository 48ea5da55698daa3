-- Asks the real zsh about lines: which commands each would run, whether it parses, and its words.
-- One zsh a batch, in an empty directory of its own and without any environment; as an ordinary user
-- even where the specs run as root. Test help only.
local M = {}

local LIMIT <const> = 15

local root = os.getenv("EFR_SOURCE") or "."

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function command_output(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  pipe:close()
  return (text:gsub("%s+$", ""))
end

local function records(text, count)
  local results = {}
  for i = 1, count do
    results[i] = { runs = {} }
  end
  local fields = text:gmatch("([^\0]*)\0")
  for kind in fields do
    local at = results[tonumber(fields())]
    local number = tonumber(fields())
    if kind == "P" then
      at.parses = number == 1
    elseif kind == "T" then
      at.ended = true
    else
      local words = {}
      for i = 1, number do
        words[i] = fields()
      end
      if kind == "Z" then
        at.words = words
      elseif kind == "C" then
        at.printed = words[1]
      else
        table.insert(at.runs, words)
      end
    end
  end
  return results
end

---@param lines string[]  without NUL
---@param option string?  a zsh option to set, or "print": run nothing, only print
---@param limit integer?  seconds after which lines that do not end are ended
---@return table[] results  { runs = words of each command, parses, words = of ${(z)}, printed,
---  ended = the line did not end by itself, so runs may be too few }
function M.ask(lines, option, limit)
  local dir = command_output("mktemp -d")
  local input = assert(io.open(dir .. "/lines", "wb"))
  input:write(table.concat(lines, "\0"), "\0")
  input:close()
  local user = ""
  if command_output("id -u") == "0" then
    user = "/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "
    os.execute("chmod 755 '" .. dir .. "'")
  end
  os.execute(("mkdir '%s/room' && cp '%s/spec/perm/shell_judge.zsh' '%s/' && touch '%s/records'"
    .. " '%s/progress' '%s/room/i' && chmod 777 '%s/room' '%s/records' '%s/progress'"):format(dir, root,
    dir, dir, dir, dir, dir, dir, dir))
  local ok = os.execute(("cd '%s/room' && env -i HOME='%s/room' PATH=/nonexistent LC_ALL=C.UTF-8 "
    .. "JUDGE_LIMIT=%d %s/bin/zsh -f ../shell_judge.zsh ../lines ../records ../progress '%s' "
    .. "2>'%s/errors'"):format(dir, dir, limit or LIMIT, user, option or "", dir))
  local text, errors = read(dir .. "/records"), read(dir .. "/errors")
  -- A disowned job of the last line may still write its file.
  for _ = 1, 20 do
    if os.execute("rm -rf '" .. dir .. "' 2>/dev/null") then
      break
    end
  end
  assert(ok, errors)
  return records(text, #lines)
end

return M
