-- Owns: the values that the variables of `for` loops can have where a command uses them.
-- Must not know: what a value is, or how a line is read.
-- Runs in efrd, on the loop thread. Pure; the number of combinations has a limit.

local M = {}

---More would make the work quadratic in the line.
M.VALUES_MAX = 64

local NO_NAMES <const>, NO_VALUES <const> = {}, { {} }

local function variables(word, out)
  for _, part in ipairs(word.parts) do
    if part.t == "param" then out[#out + 1] = part.name or "" end
    for _, item in ipairs(part.items or {}) do variables(item, out) end
  end
end

---Names of the variables that a command uses itself, not in an inner line.
---@param node table  a simple command
---@param values table<string, table>  the values of the loops around
---@return string[] names  none where no loop is around; not to be changed
function M.used(node, values)
  if next(values) == nil then return NO_NAMES end
  local out = {}
  for _, word in ipairs(node.words) do variables(word, out) end
  for _, redir in ipairs(node.redirs) do
    local word = redir.heredoc and redir.heredoc.body or redir.target
    if word then variables(word, out) end
  end
  return out
end

---Names of the variables that a word uses itself.
---@param word table
---@return string[] names
function M.used_by(word)
  local out = {}
  variables(word, out)
  return out
end

---Every combination of values that some variables can have.
---@param names string[]
---@param values table<string, table>  the values of the loops around
---@return table<string, any>[]? bindings  name to value; nil: too many; not to be changed
function M.bindings(names, values)
  if #names == 0 then return NO_VALUES end
  local out, done = { {} }, {}
  for _, name in ipairs(names) do
    if values[name] and not done[name] then
      done[name] = true
      local more = {}
      for _, vars in ipairs(out) do
        for _, value in ipairs(values[name]) do
          local one = { [name] = value }
          for key, other in pairs(vars) do one[key] = other end
          more[#more + 1] = one
        end
      end
      if #more > M.VALUES_MAX then return nil end
      out = more
    end
  end
  return out
end

return M
