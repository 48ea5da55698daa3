-- Owns: the user's rules files: which they are, in which order, and the copy of the last good
-- version in the state root with its SHA-256.
-- Must not know: what the files say. Files come through the fs port. Runs in efrd and efr; hash may
-- wait, so that a large version does not hold up the loop.

local async = require "efr.util.async"
local sha256 = require "efr.util.sha256"

local M = {}

local TOTAL_MAX <const> = 256 * 1024
local FILES_MAX <const> = 100
local GOOD_MAX <const> = 512 * 1024
local HASH_SLICE <const> = 16 * 1024
local NAME_MAX <const> = 48 -- Lua cuts longer names in its messages
local HEAD <const> = "efr rules 1"

---@class efr.rules.Source
---@field name string  below the config root: "rules.lua", "rules.d/10-git.lua"
---@field text string

local function problem(name, message)
  return nil, { message = message, file = name }
end

-- Reads one file. A fifo or a device would hold up the loop.
local function read(fs, dir, name, out)
  local path = dir .. "/" .. name
  local stat, err, code = fs.stat(path)
  if not stat then
    if code == "ENOENT" and not fs.lstat(path) then return true end
    return problem(name, err)
  end
  if stat.type ~= "file" then return problem(name, "is no file") end
  local text
  text, err, code = fs.read_file(path, TOTAL_MAX)
  if not text then
    return problem(name, code == "EFR_TOO_BIG" and "is longer than 256 KiB" or err)
  end
  out[#out + 1] = { name = name, text = text }
  out.bytes = out.bytes + #text
  if out.bytes > TOTAL_MAX then return problem(name, "makes all files longer than 256 KiB") end
  return true
end

local function names_of(fs, dir)
  local entries, err, code = fs.readdir(dir .. "/rules.d")
  if not entries then
    if code == "ENOENT" then return {} end
    return problem("rules.d", err)
  end
  local names = {}
  for _, entry in ipairs(entries) do
    if entry.name:find("%.lua$") and entry.name:sub(1, 1) ~= "." then
      if not entry.name:find("^[%w._+-]+$") or #entry.name > NAME_MAX then
        return problem("rules.d",
          "a file name is longer than 48, or has other characters than letters, digits and . _ + -")
      end
      names[#names + 1] = "rules.d/" .. entry.name
    end
  end
  if #names > FILES_MAX then return problem("rules.d", "has more than 100 files") end
  table.sort(names)
  return names
end

---The files in the order in which they run; an empty list when there are none.
---@param fs table
---@param dir string  config root
---@return efr.rules.Source[]?
---@return efr.rules.Problem?
function M.read(fs, dir)
  local out = { bytes = 0 }
  local ok, wrong = read(fs, dir, "rules.lua", out)
  if not ok then return nil, wrong end
  local names
  names, wrong = names_of(fs, dir)
  if not names then return nil, wrong end
  for _, name in ipairs(names) do
    ok, wrong = read(fs, dir, name, out)
    if not ok then return nil, wrong end
  end
  out.bytes = nil
  return out
end

---@param a efr.rules.Source[]?
---@param b efr.rules.Source[]?
---@return boolean
function M.equal(a, b)
  if not a or not b or #a ~= #b then return false end
  for i, source in ipairs(a) do
    if source.name ~= b[i].name or source.text ~= b[i].text then return false end
  end
  return true
end

local function packed(sources)
  local out = {}
  for i, source in ipairs(sources) do
    out[i] = ("%s %d\n%s\n"):format(source.name, #source.text, source.text)
  end
  return table.concat(out)
end

local function hash(text)
  local state = sha256.new()
  for at = 1, #text, HASH_SLICE do
    state:update(text:sub(at, at + HASH_SLICE - 1))
    if at + HASH_SLICE <= #text then async.sleep(0) end
  end
  return state:hex()
end

---Keeps a version as the last good one.
---@param fs table
---@param path string
---@param sources efr.rules.Source[]
---@return string? sha256
---@return string? err
function M.keep(fs, path, sources)
  local text = packed(sources)
  local sum = hash(text)
  local ok, err = fs.mkdirs(path:match("^(.*)/"), 448)
  if ok then
    ok, err = fs.write_atomic(path, ("%s %s\n%s"):format(HEAD, sum, text), 384)
  end
  if not ok then return nil, err end
  return sum
end

local function unpacked(text)
  local out, at = {}, 1
  while at <= #text do
    local name, length, from = text:match("^(%g+) (%d+)\n()", at)
    length = tonumber(length)
    if not name or from + length > #text then return nil end
    out[#out + 1] = { name = name, text = text:sub(from, from + length - 1) }
    at = from + length + 1
  end
  return out
end

---The last good version; nil when there is none, or when the copy is damaged.
---@param fs table
---@param path string
---@return efr.rules.Source[]?
---@return string? sha256
function M.good(fs, path)
  local text = fs.read_file(path, GOOD_MAX)
  local sum, from = (text or ""):match("^" .. HEAD .. " (%x+)\n()")
  if not sum or hash(text:sub(from)) ~= sum then return nil end
  local out = unpacked(text:sub(from))
  return out, out and sum
end

return M
