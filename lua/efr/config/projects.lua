-- Owns: the registry of projects, `projects.toml`, as text: reading, adding, removing.
-- Must not know: the disk (callers read and write the file) or who asks.
-- Runs in efrd and efr. Pure.
--
-- The file is the user's: an entry is added after the last one or cut out with its lines, and every
-- other byte stays as it is.
--
--   [[projects]]
--   id = "019a9b1c-..."
--   root = "/home/u/p/app"
--   name = "app"            # optional

local edit = require "efr.config.edit"
local list = require "efr.util.list"
local lpegx = require "efr.util.lpegx"
local toml = require "efr.config.toml"
local validate = require "efr.util.validate"

local M = {}

local ENTRY <const> = {
  id = { type = "uuid" },
  root = { type = "string", pattern = "^/", shape = "an absolute path" },
  name = { type = "string", optional = true, min = 1, max = 200 },
}

---@class efr.Project
---@field id string  UUID
---@field root string  absolute, without a trailing slash
---@field name string?

local function clean(root)
  local out = root:gsub("/+$", "")
  return out == "" and "/" or out
end

-- Whether a path is a root or lies below it.
local function within(path, root)
  local below = root == "/" and "/" or root .. "/"
  return path == root or path:sub(1, #below) == below
end

local function refuse(text, path, pos, message)
  local line, column = lpegx.line_column(text, pos)
  local err = ("%s line %d column %d: %s"):format(path, line, column, message)
  return nil, err, "EFR_CONFIG", { line = line, column = column }
end

-- The entries with their document, or nil, err, code, place.
local function read(text, path)
  local root, document, at = toml.parse(text)
  if not root then return nil, ("%s %s"):format(path, document), "EFR_CONFIG", at end
  for _, name in ipairs(list.keys(root)) do
    if name ~= "projects" then
      local place = document.where[root][name]
      return refuse(text, path, place.key_from or place.from, "unknown key " .. name)
    end
  end
  local entries = root.projects or {}
  if root.projects ~= nil and not toml.is_array(entries) then
    return nil, path .. ": projects must be tables [[projects]]", "EFR_CONFIG"
  end
  local seen = {}
  for i, entry in ipairs(entries) do
    local place = document.where[entries][i]
    local ok, err = validate.check(ENTRY, entry, { strict = true })
    if not ok then return refuse(text, path, place.from, "projects: " .. err) end
    local key = clean(entry.root)
    if seen[key] or seen[entry.id] then
      return refuse(text, path, place.from, "this project is given twice")
    end
    seen[key], seen[entry.id] = true, true
  end
  return entries, document
end

---Reads the registry.
---@param text string?  nil: there is no file
---@param path string?  for errors
---@return efr.Project[]? projects
---@return string? err
---@return string? code
---@return table? place  {line, column} of the error
function M.load(text, path)
  local entries, err, code, place = read(text or "", path or "projects.toml")
  if not entries then return nil, err, code, place end
  return list.map(entries, function(entry)
    return { id = entry.id, root = clean(entry.root), name = entry.name }
  end)
end

---Whether a directory can be a project. `/`, the home directory and what is above it are taken
---only when the user named them.
---@param root string  absolute
---@param home string
---@param named boolean?  the user gave this very directory
---@return boolean? ok
---@return string? err
---@return string? code  "invalid"
function M.check_root(root, home, named)
  root = clean(root)
  if not named and within(home, root) then
    return nil, ("%s is too wide for a project: it holds your whole home directory; to add it, "
      .. "name it"):format(root), "invalid"
  end
  if not utf8.len(root) then
    return nil, "the name of a project directory must be UTF-8", "invalid"
  end
  return true
end

---Adds a project after the last one.
---@param text string?  the file as it is
---@param project efr.Project
---@param path string?
---@return string? text  the new file
---@return string? err
---@return string? code  "conflict" when the root is registered, "invalid", or "EFR_CONFIG"
function M.add(text, project, path)
  path, text = path or "projects.toml", text or ""
  local ok, err = validate.check(ENTRY, project, { strict = true })
  if not ok then return nil, err, "invalid" end
  local entries, why, code = read(text, path)
  if not entries then return nil, why, code end
  local root = clean(project.root)
  for _, entry in ipairs(entries) do
    if clean(entry.root) == root then return nil, root .. " is already a project", "conflict" end
  end
  local fields = { { "id", project.id }, { "root", root } }
  if project.name then fields[3] = { "name", project.name } end
  return edit.add_entry(text, "projects", fields)
end

---Removes the project of a root.
---@param text string?
---@param root string  absolute
---@param path string?
---@return string? text  the new file
---@return efr.Project|string project  the error text on failure
---@return string? code  "not_found" or "EFR_CONFIG"
function M.remove(text, root, path)
  path, text, root = path or "projects.toml", text or "", clean(root)
  local entries, err, code = read(text, path)
  if not entries then return nil, err, code end
  for i, entry in ipairs(entries) do
    if clean(entry.root) == root then
      local fresh
      fresh, err, code = edit.remove_entry(text, "projects", i)
      if not fresh then return nil, err, code end
      return fresh, { id = entry.id, root = root, name = entry.name }
    end
  end
  return nil, root .. " is no registered project", "not_found"
end

---The project whose root holds a directory; of several the deepest.
---@param projects efr.Project[]
---@param dir string  absolute, without `.` and `..`
---@return efr.Project? project
function M.containing(projects, dir)
  local best
  for _, project in ipairs(projects) do
    if within(dir, project.root) and (not best or #project.root > #best.root) then
      best = project
    end
  end
  return best
end

return M
