-- Owns: what the file tools share: from the path of the model to one real path, reading and writing
-- exactly that one, and the report of a change.
-- Must not know: the tools' texts, or who decides.
-- Runs in efrd, on the loop thread.
--
-- Policy: a path is resolved once, when the call declares what it touches. Both names are declared,
-- and the tool then opens the real one without following any link, so what was judged is what is
-- used. A link stays a link: its target is written. Bytes are never changed on the way; only what
-- the model reads is made UTF-8.

local diff = require "efr.util.diff"
local text = require "efr.util.text"

local M = {}

M.MAX_BYTES = 16 * 1024 * 1024
local NUL_SCAN_BYTES <const> = 8192
local MAX_LINKS <const> = 40
local NEW_FILE_MODE <const> = 420 -- 0644
local NEW_DIR_MODE <const> = 493 -- 0755
local PREVIEW <const> = { context = 3, max_lines = 200, max_bytes = 16 * 1024 }
local RESULT <const> = { context = 3, max_lines = 2000, max_bytes = 256 * 1024 }

-- Besides ~ only $SCRATCH is known, because efr's own words to the model use it.
local function absolute(path, ctx)
  local below = path:match("^%$SCRATCH(/.*)$")
  if below and ctx.scratch then return ctx.scratch .. below end
  if path == "~" then return ctx.home end
  if path:sub(1, 2) == "~/" then return ctx.home .. path:sub(2) end
  if path:sub(1, 1) == "/" then return path end
  return ctx.cwd .. "/" .. path
end

local function parent_of(path)
  local parent = path:match("^(.*)/[^/]*$")
  return parent == "" and "/" or parent
end

local function join(dir, name)
  return dir == "/" and "/" .. name or dir .. "/" .. name
end

-- The real path of what exists, with the names of what does not exist yet behind it. A link whose
-- target is missing counts as its target. fuel limits links and depth together.
local function real_path(fs, path, fuel)
  local real, err, code = fs.realpath(path)
  if real then return real end
  if code ~= "ENOENT" or fuel == 0 then return nil, err end
  local name = path:match("([^/]+)/*$")
  if not name or name == "." or name == ".." then return nil, err end
  path = path:gsub("/+$", "")
  local parent
  parent, err = real_path(fs, parent_of(path), fuel - 1)
  if not parent then return nil, err end
  local here = join(parent, name)
  local target = fs.readlink(here)
  if not target then return here end
  return real_path(fs, target:sub(1, 1) == "/" and target or join(parent, target), fuel - 1)
end

---@class efr.ToolTarget
---@field named string  absolute, as the model named it
---@field real string  without links
---@field shown string  the model's own spelling
---@field linked boolean  whether the way went through a link

-- Lexical, to tell a link from a mere `..` or doubled slash.
local function plain(path)
  local out = {}
  for part in path:gmatch("[^/]+") do
    if part == ".." then out[#out] = nil elseif part ~= "." then out[#out + 1] = part end
  end
  return "/" .. table.concat(out, "/")
end

---Resolves the path of a call, once, and keeps it in the context.
---@param input { path: any }
---@param ctx efr.ToolContext
---@return efr.ToolTarget? target
---@return string? err  for the model
function M.resolve(input, ctx)
  local path = input.path
  if type(path) ~= "string" or path == "" then return nil, "path must be a string." end
  if path:find("\0", 1, true) then return nil, "path holds a NUL byte." end
  if path:sub(-1) == "/" then return nil, path .. " names a directory, not a file." end
  local named = absolute(path, ctx)
  local real, err = real_path(ctx.fs, named, MAX_LINKS * 8)
  if not real then return nil, ("The path cannot be used: %s."):format(err) end
  ctx.target = { named = named, real = real, shown = path, linked = real ~= plain(named) }
  return ctx.target
end

---The requirements of a file call: both names of the path.
---@param kind string  "read" or "write"
---@param target efr.ToolTarget
---@return table[]
function M.requirements(kind, target)
  local out = { { kind = kind, path = target.named } }
  if target.real ~= target.named then out[2] = { kind = kind, path = target.real } end
  return out
end

local READ_ERRORS <const> = {
  ENOENT = "%s does not exist.",
  EFR_NOT_REGULAR = "%s is not a regular file.",
  EISDIR = "%s is a directory.",
  ELOOP = "%s changed since this call was judged, and nothing was done. Call again.",
  EFR_TOO_BIG = "%s has more than 16 MiB.",
}

local function failure(target, err, code)
  local form = READ_ERRORS[code]
  if form then return form:format(target.shown) end
  return ("%s: %s."):format(target.shown, err)
end

---The bytes of the file.
---@param ctx efr.ToolContext
---@return string? bytes
---@return string? err  for the model
---@return string? code  "ENOENT" when there is no file
function M.read(ctx)
  local target = assert(ctx.target, "the call declared no path")
  local bytes, err, code = ctx.fs.read_real(target.real, M.MAX_BYTES)
  if not bytes then return nil, failure(target, err, code), code end
  return bytes
end

---Whether the bytes are no text.
---@param bytes string
---@return boolean
function M.is_binary(bytes)
  local nul = bytes:find("\0", 1, true)
  return nul ~= nil and nul <= NUL_SCAN_BYTES
end

---Writes the file as a whole, or not at all.
---@param ctx efr.ToolContext
---@param bytes string
---@return boolean? ok
---@return string? err  for the model
function M.write(ctx, bytes)
  local target = assert(ctx.target, "the call declared no path")
  if #bytes > M.MAX_BYTES then return nil, "The new content has more than 16 MiB." end
  local ok, err, code = ctx.fs.mkdirs_real(parent_of(target.real), NEW_DIR_MODE)
  if ok then
    ok, err, code = ctx.fs.write_real(target.real, bytes, { mode = NEW_FILE_MODE, keep = true })
  end
  if not ok then return nil, failure(target, err, code) end
  return true
end

local function with_exact_name(file, path, ctx)
  file.path = ctx.text.clean(path)
  if file.path ~= path then file.path_b64 = text.base64(path) end
  return file
end

---The report of a change: FileChanges of the protocol, and a diff for people.
---@param ctx efr.ToolContext
---@param old string?  nil: the file is new
---@param new string
---@return table changes
---@return string? diff  nil when the file is no text or nothing changed
function M.report(ctx, old, new)
  local file = { kind = old and "modified" or "added", added = 0, removed = 0 }
  local shown
  if M.is_binary(old or "") or M.is_binary(new) then
    file.binary = true
  else
    shown, file.added, file.removed = diff.unified(old or "", new, RESULT)
    if shown == "" then shown = nil end
  end
  with_exact_name(file, ctx.target.real, ctx)
  local files = (old ~= new) and { file } or {}
  return { files = files, added = file.added, removed = file.removed }, shown
end

---The diff that the user sees before deciding.
---@param old string
---@param new string
---@return string
function M.preview(old, new)
  if M.is_binary(old) or M.is_binary(new) then
    return ("[not text: %d bytes become %d bytes]\n"):format(#old, #new)
  end
  return (diff.unified(old, new, PREVIEW))
end

---A line for results whose path went through a link.
---@param target efr.ToolTarget
---@return string  empty when there was none
function M.link_note(target)
  if not target.linked then return "" end
  return ("[%s leads through a link to %s]\n"):format(target.shown, target.real)
end

return M
