-- Makes an undefined global an error, read or written. Must be the first module of a program. Pure
-- Lua.
local M = {}

---Seals a table of globals: what is in it now stays usable, everything else raises.
---@param globals table
function M.seal(globals)
  local function refuse(action)
    return function(_, name)
      error(action .. " of undefined global '" .. tostring(name) .. "'", 2)
    end
  end
  setmetatable(globals, {
    __index = refuse("read"),
    __newindex = refuse("write"),
    __metatable = false,
  })
end

return M
