---@meta efr.modules
-- Which modules this program holds.
local M = {}

---Names of the embedded modules (Lua and SQL) that start with the prefix, sorted.
---@param prefix? string  default: all
---@return string[]
function M.list(prefix) end

---Names of the C modules of this program, in no order.
---@return string[]
function M.native() end

return M
