-- efr config show: every setting, its value and where it comes from.

local M = { summary = "the settings in force" }

function M.add(parser)
  parser:command_target("action")
  parser:command("show", "every key with its value and source"):add_help(false)
end

local function quote(value)
  local escaped = value:gsub('[\\"]', "\\%0"):gsub("[\0-\31\127]", function(c)
    return ("\\u%04X"):format(c:byte())
  end)
  return '"' .. escaped .. '"'
end

local function toml(value)
  if type(value) == "string" then
    return quote(value)
  end
  if type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  if #value > 0 or next(value) == nil then
    for i, item in ipairs(value) do
      parts[i] = toml(item)
    end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for name, item in pairs(value) do
    parts[#parts + 1] = name .. " = " .. toml(item)
  end
  table.sort(parts)
  return "{ " .. table.concat(parts, ", ") .. " }"
end

function M.run(_, env)
  local config, message, code = env:config()
  if not config then
    return nil, message, code
  end
  local section = ""
  for _, entry in ipairs(config:all()) do
    local head, key = entry.name:match("^(.*)%.([^.]+)$")
    head, key = head or "", key or entry.name
    if head ~= section then
      env:out("\n")
      env:say(("[%s]"):format(head))
      section = head
    end
    if entry.value == nil then
      env:say(("# %s is unset"):format(key))
    else
      env:say(("%s = %s  # %s"):format(key, toml(entry.value), entry.source))
    end
  end
  return 0
end

return M
