---@meta efr.fs
-- Files by path. Paths must not be empty or hold NUL (raises). Failures are nil, text, code.
local M = {}

---@class efr.Stat
---@field type "file"|"dir"|"link"|"socket"|"fifo"|"char"|"block"
---@field mode integer  permission bits
---@field uid integer
---@field gid integer
---@field size integer  bytes
---@field mtime_us integer  microseconds since 1970
---@field dev integer
---@field ino integer
---@field nlink integer

---@class efr.DirEntry
---@field name string  bytes
---@field type "file"|"dir"|"link"|"socket"|"fifo"|"char"|"block"

---A whole file; links are followed.
---@param path string
---@param max integer?  bytes, default 64 MiB; more is EFR_TOO_BIG
---@return string? bytes
---@return string? err
---@return string? code
function M.read_file(path, max) end

---A whole regular file, no component of the path may be a link (ELOOP); EFR_NOT_REGULAR for
---anything else. Never waits for a fifo.
---@param path string
---@param max integer?  bytes, default 64 MiB; more is EFR_TOO_BIG
---@return string? bytes
---@return string? err
---@return string? code
function M.read_real(path, max) end

---Writes through a temporary file in the same directory, synced and renamed. The path's last name
---is replaced, also when it is a link.
---@param path string
---@param bytes string
---@param mode integer?  default 0600
---@return true? ok
---@return string? err
---@return string? code
function M.write_atomic(path, bytes, mode) end

---@class efr.WriteRealOptions
---@field mode integer?  of a new file, default 0644
---@field keep boolean?  an existing file keeps mode and owner; EFR_NOT_REGULAR for other types

---As write_atomic, through a parent directory whose path holds no link (ELOOP).
---@param path string
---@param bytes string
---@param options efr.WriteRealOptions?
---@return true? ok
---@return string? err
---@return string? code
function M.write_real(path, bytes, options) end

---@param path string
---@return efr.Stat?
---@return string? err
---@return string? code
function M.stat(path) end

---As stat, of a link itself.
---@param path string
---@return efr.Stat?
---@return string? err
---@return string? code
function M.lstat(path) end

---@param path string
---@return string? absolute  without links
---@return string? err
---@return string? code
function M.realpath(path) end

---@param path string
---@return string? target
---@return string? err
---@return string? code
function M.readlink(path) end

---Entries without "." and "..", in no order.
---@param path string
---@param max integer?  stop after so many
---@return efr.DirEntry[]?
---@return string? err
---@return string? code
function M.readdir(path, max) end

---Whether path is a directory, no link, of this user, without any right for group and others
---(EFR_NOT_PRIVATE).
---@param path string
---@return true? ok
---@return string? err
---@return string? code
function M.check_private_dir(path) end

---@param path string
---@param mode integer?  default 0777 without the umask
---@return true? ok
---@return string? err
---@return string? code
function M.mkdir(path, mode) end

---Makes the directories above as well; existing ones are fine.
---@param path string
---@param mode integer?  of those that are made
---@return true? ok
---@return string? err
---@return string? code
function M.mkdirs(path, mode) end

---As mkdirs, and no component of the path may be a link (ELOOP).
---@param path string
---@param mode integer?
---@return true? ok
---@return string? err
---@return string? code
function M.mkdirs_real(path, mode) end

---@param path string
---@return true? ok
---@return string? err
---@return string? code
function M.unlink(path) end

---@param path string
---@return true? ok
---@return string? err
---@return string? code
function M.rmdir(path) end

---@param from string
---@param to string
---@return true? ok
---@return string? err
---@return string? code
function M.rename(from, to) end

---@param target string
---@param path string
---@return true? ok
---@return string? err
---@return string? code
function M.symlink(target, path) end

---Follows links.
---@param path string
---@param mode integer
---@return true? ok
---@return string? err
---@return string? code
function M.chmod(path, mode) end

---Removes a file or a tree; works on descriptors, follows no link, enters no mount (EXDEV). A
---missing path is fine.
---@param path string
---@return true? ok
---@return string? err
---@return string? code
function M.rmtree(path) end

return M
