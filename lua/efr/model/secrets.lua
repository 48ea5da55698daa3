-- Owns: the credential files data/secrets/<provider>.json: reading, writing, removing.
-- Must not know: what a key is used for. Files come through the fs port. Runs in efrd.
--
-- Policy: a file or directory that group or others can reach, that another user owns, or that is a
-- link, is refused and never repaired: somebody may have read it. Only version 1 is read. Texts of
-- errors never hold any part of a key.

local redact = require "efr.util.redact"

local M = {}

M.VERSION = 1 ---@type integer
M.MAX_BYTES = 64 * 1024 ---@type integer

---Whether `id` can name a provider's file.
---@param id any
---@return boolean
function M.is_provider_id(id)
  return type(id) == "string" and #id <= 64 and id:find("^[a-z0-9._-]+$") ~= nil
    and not id:find("^%.")
end

local function path_of(dir, provider)
  assert(M.is_provider_id(provider), "bad provider id")
  return dir .. "/" .. provider .. ".json"
end

-- Modes are whole numbers with the file type left out.
local function check_file(ports, path)
  local info, message, code = ports.fs.lstat(path)
  if not info then return nil, message, code end
  if info.type ~= "file" then return nil, path .. " is no regular file", "EFR_UNSAFE" end
  if info.mode & 63 ~= 0 then
    return nil, path .. " can be reached by other users; remove it and log in again", "EFR_UNSAFE"
  end
  if info.uid ~= ports.sys.getuid() then
    return nil, path .. " belongs to another user", "EFR_UNSAFE"
  end
  return true
end

local function check_dir(ports, dir)
  local info, message, code = ports.fs.lstat(dir)
  if not info then return nil, message, code end
  return ports.fs.check_private_dir(dir)
end

---Reads the credential of a provider.
---@param ports table  fs, sys, json
---@param dir string  the secrets directory
---@param provider string
---@return table|nil secret  {kind="api_key", key}
---@return string? message
---@return string? code  "ENOENT" when there is none
function M.read(ports, dir, provider)
  local path = path_of(dir, provider)
  local ok, message, code = check_dir(ports, dir)
  if not ok then return nil, message, code or "EFR_UNSAFE" end
  ok, message, code = check_file(ports, path)
  if not ok then return nil, message, code end
  local bytes
  bytes, message, code = ports.fs.read_real(path, M.MAX_BYTES)
  if not bytes then return nil, message, code end
  local value = ports.json.decode(bytes)
  if type(value) ~= "table" then return nil, path .. " holds no JSON object", "EFR_JSON" end
  if value.version ~= M.VERSION then
    return nil, ("%s has version %s; this efr reads %d"):format(path, tostring(value.version),
      M.VERSION), "EFR_VERSION"
  end
  if value.kind == "api_key" and type(value.key) ~= "string" then
    return nil, path .. " holds no key", "EFR_JSON"
  end
  return value
end

---Writes the credential of a provider, mode 0600 in a directory of mode 0700.
---@param ports table
---@param dir string
---@param provider string
---@param secret table  {kind="api_key", key}
---@return true|nil
---@return string? message
---@return string? code
function M.write(ports, dir, provider, secret)
  local path = path_of(dir, provider)
  local ok, message, code = check_dir(ports, dir)
  if not ok and code == "ENOENT" then
    ok, message, code = ports.fs.mkdir(dir, 448) -- 0700
    if ok then ok, message, code = check_dir(ports, dir) end
  end
  if not ok then return nil, message, code or "EFR_UNSAFE" end
  ok, message, code = check_file(ports, path)
  if not ok and code ~= "ENOENT" then return nil, message, code end
  local value = { version = M.VERSION }
  for name, field in pairs(secret) do value[name] = field end
  local text = ports.json.encode(value, { sort = true, pretty = true })
  return ports.fs.write_atomic(path, text .. "\n", 384) -- 0600
end

---Removes the credential of a provider.
---@param ports table
---@param dir string
---@param provider string
---@return boolean|nil removed  false when there was none
---@return string? message
---@return string? code
function M.remove(ports, dir, provider)
  local ok, message, code = ports.fs.unlink(path_of(dir, provider))
  if ok then return true end
  if code == "ENOENT" then return false end
  return nil, message, code
end

---How a key is shown.
M.hint = redact.hint

---Checks the text of a key that a user typed.
---@param key string
---@return true|nil
---@return string? message
function M.check_key(key)
  if key == "" then return nil, "the key is empty" end
  if #key > 4096 then return nil, "the key is longer than 4096 bytes" end
  if key:find("[^\x21-\x7e]") then
    return nil, "the key holds blanks or characters that are not ASCII"
  end
  if key:find("^sk%-admin%-") then
    return nil, "this is an admin key; efr needs an ordinary API key"
  end
  return true
end

return M
