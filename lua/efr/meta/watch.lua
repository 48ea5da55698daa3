---@meta efr.watch
-- Changes of directories, by inotify. Loop thread only. Failures are nil, text, code; a closed
-- watch gives nil, "closed", "EFR_CLOSED".
local M = {}

---@class efr.Watch
local Watch = {}

---A watch of no directory yet. Kinds: "write" (an entry was written and closed), "create",
---"delete", "move" (an entry came or went by a rename), "gone" (the directory is watched no more,
---name is nil), "overflow" (events were lost, id is -1).
---@param fn fun(id: integer, kind: string, name: string?)
---@return efr.Watch?
---@return string? err
---@return string? code
function M.open(fn) end

---Watches a directory; the same directory gives the same id.
---@param path string
---@return integer? id
---@return string? err
---@return string? code
function Watch:add(path) end

---Watches a directory no more.
---@param id integer
---@return true? ok
---@return string? err
---@return string? code
function Watch:remove(id) end

---Ends all.
function Watch:close() end

return M
