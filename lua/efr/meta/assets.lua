---@meta efr.assets
-- Embedded files that are no Lua: those of zsh/.
local M = {}

---@param path string  path in the source tree, "zsh/hidden/zshenv"
---@return string? bytes
function M.get(path) end

---Paths of all assets, in no order.
---@return string[]
function M.list() end

return M
