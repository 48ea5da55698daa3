-- Owns: what an efrd that was killed left in the runtime root.
-- Must not know: what is in those directories. Runs in efrd, at its start, behind the lock.
--
-- Policy: shells and calls of conversations ended with the efrd that had them, so their directories
-- go. The sandbox state of a conversation stays, and so does an `efr run`, which may go on.

local M = {}

-- Of sbx.state: hidden names in the directory of a conversation.
local function is_call(name)
  return name:sub(1, 1) ~= "."
end

local function remove_calls(fs, dir)
  for _, entry in ipairs(fs.readdir(dir) or {}) do
    if is_call(entry.name) then fs.rmtree(dir .. "/" .. entry.name) end
  end
  fs.rmdir(dir) -- stays while a state is kept there
end

---Removes it. What cannot be removed stays; the next start tries again.
---@param fs table  port: readdir, rmdir, rmtree
---@param runtime string  the runtime root
---@param is_conversation fun(id: string): boolean
function M.remove(fs, runtime, is_conversation)
  for _, entry in ipairs(fs.readdir(runtime .. "/shell") or {}) do
    fs.rmtree(runtime .. "/shell/" .. entry.name)
  end
  for _, entry in ipairs(fs.readdir(runtime .. "/sbx") or {}) do
    if is_conversation(entry.name) then remove_calls(fs, runtime .. "/sbx/" .. entry.name) end
  end
end

return M
