---@meta efr.reach
-- Whether places of the file system answer. A dead network or FUSE mount holds whoever looks at it,
-- so a process of its own looks. Loop thread only.
local M = {}

---Looks at each of the paths, in their order; each ends with a NUL byte.
---@param paths string
---@param seconds integer  then the process ends, wherever it is
---@return integer? fd  a socket on which a byte arrives after each path that answered, also with an
---  error, and then the end; the caller closes it
---@return string? err
---@return string? code
function M.ask(paths, seconds) end

return M
