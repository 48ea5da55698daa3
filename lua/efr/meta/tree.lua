---@meta efr.tree
-- A directory tree held open: its walks, and what they find. No link is followed and no mount is
-- entered. Failures are nil, text, code; a closed tree gives nil, "closed", "EFR_CLOSED", and one
-- that is walked or fed from nil, text, "EFR_BUSY". Loop thread only.
local M = {}

---@class efr.TreeEntry
---@field type "file"|"dir"|"link"|"socket"|"fifo"|"char"|"block"
---@field mode integer  permission bits
---@field uid integer
---@field gid integer
---@field size integer  bytes
---@field ino integer
---@field ctime_ns integer
---@field mark string?  "special", "unreadable", "big", "nested", "mount", "passed", "unread" or "open"
---@field empty boolean  a directory without entries

---@class efr.TreeChange
---@field path string  relative to the root
---@field before efr.TreeEntry?
---@field after efr.TreeEntry?

---@class efr.Tree
local Tree = {}

---Opens a directory; no component of the path may be a link.
---@param path string
---@return efr.Tree?
---@return string? err
---@return string? code
function M.open(path) end

---Directories of this name are not entered before decide says so; until then their mark is "open".
---@param name string
---@return true? ok
---@return string? err
---@return string? code
function Tree:ask_for(name) end

---@param path string  of a directory
---@param enter boolean
---@return true? ok
---@return string? err
---@return string? code
function Tree:decide(path, enter) end

---Forgets what was decided.
---@return true? ok
---@return string? err
---@return string? code
function Tree:forget() end

---@class efr.TreeLimits
---@field max_bytes integer?  of a file; longer ones are marked
---@field max_entries integer?  more is EFR_TREE_TOO_MANY
---@field watch boolean?

---@class efr.TreeSums
---@field entries integer
---@field linked integer  files with more than one name
---@field watched boolean  every directory is watched
---@field remote boolean  a file system whose times and events prove nothing

---Walks the tree in another thread, then calls fn with efr.TreeSums, or nil, text, code.
---@param limits efr.TreeLimits
---@param fn fun(sums: efr.TreeSums?, err: string?, code: string?)
---@return true? ok
---@return string? err
---@return string? code
function Tree:walk(limits, fn) end

---The next differences between the committed walk and the newest one, in the order of the paths;
---an empty list: no more.
---@param count integer
---@return efr.TreeChange[]?
---@return string? err
---@return string? code
function Tree:take(count) end

---@class efr.TreeFeed
---@field fd integer  a pipe that blocks; it must stay open until fn is called
---@field paths string[]  relative to the root
---@field first_mark integer?  of paths[1], default 1; the next ones follow
---@field max_bytes integer?  of a file; a longer one fails
---@field links boolean?  the paths are links: their texts are written

---Writes files as input of `git fast-import`, one blob with a mark each, in another thread. Then
---calls fn with the numbers of the paths that have none: they could not be read or did not hold
---still; or with nil, text, code, when the pipe broke. Their mark is "unread" then, and a later walk
---gives them as a difference. The paths stand in the order of take.
---@param what efr.TreeFeed
---@param fn fun(failed: integer[]?, err: string?, code: string?)
---@return true? ok
---@return string? err
---@return string? code
function Tree:feed(what, fn) end

---The newest walk is what later ones are compared with.
---@return true? ok
---@return string? err
---@return string? code
function Tree:commit() end

---Whether all of the newest walk is watched and nothing happened since it began.
---@return boolean? quiet
---@return string? err
---@return string? code
function Tree:is_quiet() end

---Keeps the committed walk in a private file; load takes it back when the tag is the same
---(EFR_TREE_STALE).
---@param path string
---@param tag string
---@return true? ok
---@return string? err
---@return string? code
function Tree:save(path, tag) end

---@param path string
---@param tag string
---@return true? ok
---@return string? err
---@return string? code
function Tree:load(path, tag) end

function Tree:close() end

return M
