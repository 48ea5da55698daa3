-- Owns: small questions about the words after a program's name.
-- Must not know: programs or exits.
-- Runs in efrd and efr. Pure.

local matching = require "efr.perm.matching"

local M = {}

---Stands for what efr cannot know of a word. No word of a line can hold this byte.
M.UNKNOWN = "\0" ---@type string

---Whether a part of a word cannot be known.
---@param word string?
---@return boolean
function M.is_unknown(word)
  return word ~= nil and word:find(M.UNKNOWN, 1, true) ~= nil
end

---A word for people.
---@param word string
---@return string
function M.shown(word)
  return (word:gsub("%z", "?"))
end

---Whether a word that cannot be known stands among the arguments.
---@param args string[]
---@return boolean
function M.has_unknown(args)
  for _, arg in ipairs(args) do
    if M.is_unknown(arg) then return true end
  end
  return false
end

---Whether a word stands among the arguments.
---@param args string[]
---@param word string
---@return boolean
function M.has(args, word)
  for _, arg in ipairs(args) do
    if arg == word then return true end
  end
  return false
end

---Whether an option in the form of a rule's forbid word stands among the arguments.
---@param args string[]
---@param forms string[]
---@return boolean
function M.any(args, forms)
  for _, arg in ipairs(args) do
    for _, form in ipairs(forms) do
      if form:sub(1, 1) == "-" and matching.hits(form, arg) then return true end
    end
  end
  return false
end

---The n-th operand and its place; options of `valued` take the next word.
---@param args string[]
---@param valued table<string, boolean>
---@param n integer?  default 1
---@return string? word
---@return integer? index
function M.first_operand(args, valued, n)
  local left, i = n or 1, 1
  while i <= #args do
    local arg = args[i]
    if arg == "-" or arg:sub(1, 1) ~= "-" then
      left = left - 1
      if left == 0 then return arg, i end
    elseif valued[arg] then
      i = i + 1
    end
    i = i + 1
  end
  return nil
end

---The value of an option: `-X POST`, `-XPOST`, `--request=POST`, `--request POST`.
---@param args string[]
---@param short string?
---@param long string
---@return string?
function M.value(args, short, long)
  for i, arg in ipairs(args) do
    if arg == short or arg == long then return args[i + 1] end
    local attached = short and arg:sub(1, 2) == short and arg:sub(1, 2) ~= "--"
    if attached then return arg:sub(3) end
    if arg:sub(1, #long + 1) == long .. "=" then return arg:sub(#long + 2) end
  end
  return nil
end

---The host of the first operand like `host:path`, `user@host:` or `rsync://host/`.
---@param args string[]
---@return string?
function M.remote(args)
  for _, arg in ipairs(args) do
    if arg:sub(1, 1) ~= "-" then
      local host = arg:match("^%a[%w+.-]*://([^/]+)") or arg:match("^([^/:]+):")
      if host then return (host:gsub("^[^@]*@", "")) end
    end
  end
  return nil
end

---Whether one of the variables set before the command has a name of these patterns.
---@param assigns string[]?  names
---@param patterns string[]
---@return boolean
function M.sets(assigns, patterns)
  for _, name in ipairs(assigns or {}) do
    for _, pattern in ipairs(patterns) do
      if name:find(pattern) then return true end
    end
  end
  return false
end

return M
