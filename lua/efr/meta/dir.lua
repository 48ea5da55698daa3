---@meta efr.dir
-- Directories held open, and what lies in them. A path is relative to the directory; no component
-- of it may be a link (ELOOP), lead out of the directory or onto another mount (EXDEV). A name is
-- one component. Failures are nil, text, code; a closed directory gives nil, "closed",
-- "EFR_CLOSED". Loop thread only.
local M = {}

---@class efr.DirStat
---@field type "file"|"dir"|"link"|"socket"|"fifo"|"char"|"block"
---@field mode integer  permission bits
---@field uid integer
---@field gid integer
---@field size integer  bytes
---@field dev integer
---@field ino integer
---@field ctime_ns integer  nanoseconds since 1970; no program can set it

---@class efr.Dir
local Dir = {}

---Opens a directory; no component of the path may be a link.
---@param path string
---@return efr.Dir?
---@return string? err
---@return string? code
function M.open(path) end

---A directory below this one.
---@param path string
---@return efr.Dir?
---@return string? err
---@return string? code
function Dir:open(path) end

---What path is; a link is described itself.
---@param path string
---@return efr.DirStat?
---@return string? err
---@return string? code
function Dir:stat(path) end

---The names in a directory and their types, at most max, and what the directory was before.
---@param path string  "." is the directory itself
---@param max integer
---@return table<string, string>? types
---@return efr.DirStat|string? stat  or err
---@return string? code
function Dir:list(path, max) end

---A regular file (EFR_NOT_REGULAR); more than max bytes is EFR_TOO_BIG. Never waits for a fifo.
---@param path string
---@param max integer
---@return string? bytes
---@return string? err
---@return string? code
function Dir:read(path, max) end

---@param name string
---@return string? target
---@return string? err
---@return string? code
function Dir:readlink(name) end

---Makes a file; an entry that is there is EEXIST.
---@param name string
---@param bytes string
---@param mode integer
---@return true? ok
---@return string? err
---@return string? code
function Dir:create(name, bytes, mode) end

---@param name string
---@param mode integer
---@return true? ok
---@return string? err
---@return string? code
function Dir:mkdir(name, mode) end

---@param target string
---@param name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:symlink(target, name) end

---An extended attribute of the directory itself, at most 256 bytes. Without one: ENODATA.
---@param name string
---@return string? value
---@return string? err
---@return string? code
function Dir:xattr(name) end

---Moves an entry; a link is moved itself, an entry that is there already is EEXIST.
---@param name string
---@param other efr.Dir
---@param new_name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:move(name, other, new_name) end

---Swaps two entries at once.
---@param name string
---@param other efr.Dir
---@param other_name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:exchange(name, other, other_name) end

---Of a file or a directory; a link is ELOOP.
---@param name string
---@param mode integer
---@return true? ok
---@return string? err
---@return string? code
function Dir:chmod(name, mode) end

---Of a link itself.
---@param name string
---@param uid integer
---@param gid integer
---@return true? ok
---@return string? err
---@return string? code
function Dir:chown(name, uid, gid) end

---Removes an empty directory.
---@param name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:rmdir(name) end

---Removes a file or a link.
---@param name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:remove(name) end

---Removes whatever it is, with all below; no link is followed, and a mount below is EXDEV. What is
---missing is no error.
---@param name string
---@return true? ok
---@return string? err
---@return string? code
function Dir:remove_tree(name) end

function Dir:close() end

return M
