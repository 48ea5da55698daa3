-- Owns: changing a file of the user on the disk: through a link to its target, whole or not at all,
-- and never over a change that somebody else made meanwhile.
-- Must not know: what is in the file.
-- Runs in efrd and efr. The disk is the fs port; nothing here waits.

local M = {}

M.MAX_BYTES = 1024 * 1024

local FILE_MODE <const> = 384 -- 0600
local DIR_MODE <const> = 448 -- 0700
local OWNER_WRITES <const> = 128 -- 0200
local ABSENT <const> = { ENOENT = true, ENOTDIR = true }

---Where the bytes of a path lie.
---@param fs table
---@param path string
---@return string? target  the path itself when it is no link
---@return string|boolean exists  whether the file is there; the error text on failure
---@return string? code  "ENOENT": a link to nothing
function M.target(fs, path)
  local info, err, code = fs.lstat(path)
  if not info then
    if ABSENT[code] then return path, false end
    return nil, err, code
  end
  local target = fs.realpath(path)
  if target then return target, true end
  local to = fs.readlink(path) or "?"
  return nil, ("%s is a link to %s, which does not exist"):format(path, to), "ENOENT"
end

---The text of a file.
---@param fs table
---@param path string
---@return string? text  nil without an error: there is no file
---@return string? err
---@return string? code
function M.read(fs, path)
  local text, err, code = fs.read_file(path, M.MAX_BYTES)
  if text or ABSENT[code] then return text end
  return nil, err, code
end

-- Whoever takes the write right from a file wants it to stay as it is.
local function is_read_only(fs, path)
  local info = fs.stat(path)
  return info ~= nil and info.mode ~= nil and info.mode & OWNER_WRITES == 0
end

---Writes what `change` makes of the file.
---@param fs table
---@param path string
---@param change fun(text: string?): string?, any, any, any  the new text; failures are passed on
---@return true? ok
---@return any err  on success the second result of `change`
---@return string? code  "conflict": the file changed meanwhile; try again
---@return any place
function M.change(fs, path, change)
  local target, exists, code = M.target(fs, path)
  if not target then return nil, exists, code end
  local text, err
  text, err, code = M.read(fs, target)
  if err then return nil, err, code end
  if is_read_only(fs, target) then return nil, target .. " is read-only", "EACCES" end
  local fresh, result, which, place = change(text)
  if not fresh then return nil, result, which, place end
  if fresh == (text or "") then return true, result end
  local ok
  if not text then
    ok, err, code = fs.mkdirs(target:match("^(.*)/"), DIR_MODE)
    if not ok then return nil, err, code end
  end
  if M.read(fs, target) ~= text or M.target(fs, path) ~= target then
    return nil, path .. " changed meanwhile; try again", "conflict"
  end
  ok, err, code = fs.write_atomic(target, fresh, FILE_MODE)
  if not ok then return nil, err, code end
  return true, result
end

return M
