-- Owns: what stays read-only inside the write roots of a call: everything that would run code
-- later, or that decides what efr lets through.
-- Must not know: the disk (asked through the spec's functions), git (sbx.roots) or how a floor is
-- mounted.
-- Runs in efrd. Pure but for those functions.
--
-- Policy: a floor lies on the real target of every link. One that is missing is skipped, and so is
-- one outside of every root, where nothing can be written anyway. A link in a root on the way to a
-- floor could be replaced by the call, which would move the floor away: then the call is refused.
-- A write root at or inside a floor is refused too; of directories on PATH and targets of dotfile
-- links only at one, because what lies below them runs from nowhere.

local data = require "efr.perm.floors"
local paths = require "efr.perm.paths"

local M = {}

M.ZDOTDIR_FILES = { ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout" }
-- Directories below home whose links lead to what programs read at their start.
M.LINK_DIRS = { "/.config", "/.local/bin" }
-- Beside the running efrd, or where an installation has them.
M.BINARIES = {
  "efrd", "efr", "efr-sbx", "efr-worker", "../lib/efr", "../share/zsh/plugins/efr",
}
-- Of these groups only the place itself counts against a root.
local SHALLOW <const> = { path = true, dotfile = true }

local function join(dir, name)
  return (dir == "/" and "" or dir) .. "/" .. name
end

local function add_below(out, dir, names, group)
  for _, name in ipairs(names) do out[#out + 1] = { path = join(dir, name), group = group } end
end

-- Real targets of the links of a directory. Those of the home directory count when they begin
-- with a dot.
local function add_links(out, spec, dir, dots_only, group)
  for _, name in ipairs(spec.links(dir)) do
    if not dots_only or name:sub(1, 1) == "." then
      out[#out + 1] = { path = join(dir, name), group = group }
    end
  end
end

-- What PATH names. Relative entries were refused before.
local function add_path_dirs(out, value)
  for dir in value:gmatch("[^:]+") do
    if dir ~= "/" then out[#out + 1] = { path = dir, group = "path" } end
  end
end

-- Protected names count as the first part below a project or a root.
local function add_agent_names(out, spec, roots)
  local done = {}
  local function add(root)
    if root and not done[root] then
      done[root] = true
      add_below(out, root, data.AGENTS, "agent")
    end
  end
  for _, root in ipairs(roots) do
    if root.name ~= "scratch" then add(root.path) end
  end
  for _, root in ipairs(spec.projects or {}) do add(root) end
end

---Every candidate, unresolved, in a fixed order.
---@param spec efr.sbx.Spec
---@param roots {path: string, name: string}[]
---@return {path: string, group: string}[]
function M.candidates(spec, roots)
  local out, home, config = {}, spec.home, spec.paths.config
  add_below(out, home, data.STARTUP, "startup")
  local zdotdir = spec.env.ZDOTDIR
  if zdotdir and zdotdir:sub(1, 1) == "/" then
    add_below(out, zdotdir, M.ZDOTDIR_FILES, "startup")
  end
  add_below(out, home, data.AUTOSTART, "autostart")
  add_below(out, home, data.TOOLS, "tool")
  out[#out + 1] = { path = config, group = "efr" }
  add_links(out, spec, config, false, "efr")
  add_links(out, spec, config .. "/rules.d", false, "efr")
  if spec.program_dir then add_below(out, spec.program_dir, M.BINARIES, "efr") end
  for _, path in ipairs(spec.protect or {}) do
    out[#out + 1] = { path = path, group = "protect" }
  end
  add_agent_names(out, spec, roots)
  add_links(out, spec, home, true, "dotfile")
  for _, dir in ipairs(M.LINK_DIRS) do add_links(out, spec, home .. dir, false, "dotfile") end
  add_path_dirs(out, spec.env.PATH or "")
  return out
end

local function root_over(roots, path)
  for _, root in ipairs(roots) do
    if paths.within(path, root.path) then return root end
  end
  return nil
end

---A link on the way to a path that lies in a root, so that the call could replace it.
---@param spec efr.sbx.Spec
---@param roots {path: string}[]
---@param path string
---@param real string  what it resolves to
---@return string? link
function M.changeable_link(spec, roots, path, real)
  if #roots == 0 or path == real then return nil end
  for _, link in ipairs(spec.trace(path)) do
    if root_over(roots, link) then return link end
  end
  return nil
end

-- A root that lies at or inside a floor would take the floor away.
local function check_roots(spec, roots, floor, real)
  for _, root in ipairs(roots) do
    local inside = root.path == real
      or (not SHALLOW[floor.group] and paths.within(root.path, real))
    if inside then
      return nil, ("%s cannot be a write root: it lies in %s, which is protected"):format(
        root.path, floor.path == real and real or ("%s (%s)"):format(real, floor.path))
    end
  end
  local link = M.changeable_link(spec, roots, floor.path, real)
  if link then
    return nil, ("%s is protected, and the call could change the link %s on the way to it"):format(
      floor.path, link)
  end
  return true
end

---The floors inside the roots and overlays, as mounts {kind, path}.
---@param spec efr.sbx.Spec
---@param roots {path: string, name: string}[]
---@param overlays {path: string}[]  a link in one is replaced for nobody else, so it may be
---@return {kind: string, path: string, group: string}[]? floors
---@return string? err  why the call is refused
function M.collect(spec, roots, overlays)
  local out, known = {}, {}
  for _, floor in ipairs(M.candidates(spec, roots)) do
    local seen = spec.look(floor.path)
    if seen then
      local ok, err = check_roots(spec, roots, floor, seen.real)
      if not ok then return nil, err end
      local place = root_over(roots, seen.real) or root_over(overlays, seen.real)
      if not known[seen.real] and place then
        known[seen.real] = true
        out[#out + 1] = { kind = "floor", path = seen.real, group = floor.group }
      end
    end
  end
  return out
end

return M
