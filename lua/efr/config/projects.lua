-- Owns: the registry of projects, `projects.toml`, as text: reading, adding, removing.
-- Must not know: the disk (callers read and write the file) or who asks.
-- Runs in efrd and efr. Pure.
--
-- The file is the user's: an entry is added at the end or cut out by its byte range, and every
-- other byte stays as it is.
--
--   [[projects]]
--   id = "019a9b1c-..."
--   root = "/home/u/p/app"
--   name = "app"            # optional

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

local ESCAPES <const> = {
  ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r",
}

local function quote(s)
  return '"' .. s:gsub('[%z\1-\31\127\\"]', function(c)
    return ESCAPES[c] or ("\\u%04X"):format(c:byte())
  end) .. '"'
end

---Whether a directory can be a project: not `/`, not the home directory, nothing above it.
---@param root string  absolute
---@param home string
---@return boolean? ok
---@return string? err
---@return string? code  "invalid"
function M.check_root(root, home)
  root = clean(root)
  local below = root == "/" and "/" or root .. "/"
  if (home .. "/"):sub(1, #below) == below then
    return nil, root .. " is too wide for a project: it holds your whole home directory", "invalid"
  end
  if not utf8.len(root) then
    return nil, "the name of a project directory must be UTF-8", "invalid"
  end
  return true
end

-- A file that ends inside a line gets its line feed first.
local function joined(text, entry)
  if text == "" then return entry end
  if text:sub(-1) ~= "\n" then text = text .. "\n" end
  return text .. "\n" .. entry
end

---Adds a project at the end.
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
  local entries, document, code = read(text, path)
  if not entries then return nil, document, code end
  local root = clean(project.root)
  for _, entry in ipairs(entries) do
    if clean(entry.root) == root then return nil, root .. " is already a project", "conflict" end
  end
  if #entries > 0 and #document.headers == 0 then
    return nil, path .. " lists projects in one array; write them as [[projects]]", "EFR_CONFIG"
  end
  local lines = { "[[projects]]", "id = " .. quote(project.id), "root = " .. quote(root) }
  if project.name then lines[#lines + 1] = "name = " .. quote(project.name) end
  return joined(text, table.concat(lines, "\n") .. "\n")
end

-- From the start of the header's line to the end of the line of its last value, with one of the
-- blank lines around it.
local function block(text, document, header)
  local last = header.to
  for _, place in pairs(document.where[header.table]) do last = math.max(last, place.to) end
  local from = header.from
  while from > 1 and text:sub(from - 1, from - 1) ~= "\n" do from = from - 1 end
  local to = text:find("\n", last, true) or #text
  local _, blank = text:find("^[ \t]*\r?\n", to + 1)
  if blank then
    to = blank
  elseif to == #text and text:sub(from - 2, from - 1) == "\n\n" then
    from = from - 1
  end
  return from, to
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
  local entries, document, code = read(text, path)
  if not entries then return nil, document, code end
  for _, entry in ipairs(entries) do
    if clean(entry.root) == root then
      local gone = { id = entry.id, root = root, name = entry.name }
      for _, header in ipairs(document.headers) do
        if header.table == entry then
          local from, to = block(text, document, header)
          return text:sub(1, from - 1) .. text:sub(to + 1), gone
        end
      end
      return nil, path .. " lists projects in one array; write them as [[projects]]", "EFR_CONFIG"
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
    local below = project.root .. "/"
    if dir == project.root or dir:sub(1, #below) == below then
      if not best or #project.root > #best.root then best = project end
    end
  end
  return best
end

return M
