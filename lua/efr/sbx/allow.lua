-- Owns: what the disk says about the user's always rules: the floors that only it knows, and which
-- rules cover nothing.
-- Must not know: calls, how a rule is written or saved.
-- Runs in efrd and efr, on the loop thread.

local allow = require "efr.config.allow"
local always = require "efr.perm.always"
local floors = require "efr.sbx.floors"
local paths = require "efr.perm.paths"

local M = {}

local MAX_SCANNED <const> = 4096 -- entries of a directory whose links may be floors

---@class efr.sbx.AllowSource
---@field fs table  port
---@field home string
---@field config table  get(key)
---@field machine efr.Machine
---@field path string?  PATH of the shell that runs the commands
---@field zdotdir string?

local function add_links(out, source, dir, dots_only)
  for i, entry in ipairs(source.fs.readdir(dir) or {}) do
    if i > MAX_SCANNED then break end
    local counts = entry.type == "link" and (not dots_only or entry.name:sub(1, 1) == ".")
    local real = counts and source.fs.realpath(dir .. "/" .. entry.name)
    if real then out[#out + 1] = real end
  end
end

---The floors that are no fixed names: what links of the home directory lead to, directories on
---PATH, and zsh's own directory.
---@param source efr.sbx.AllowSource
---@return string[]
function M.floors(source)
  local out = {}
  add_links(out, source, source.home, true)
  for _, dir in ipairs(floors.LINK_DIRS) do add_links(out, source, source.home .. dir, false) end
  for dir in (source.path or ""):gmatch("[^:]+") do
    local real = dir ~= "/" and source.fs.realpath(dir)
    if real and real ~= "/" then out[#out + 1] = real end
  end
  local zdotdir = source.zdotdir
  for _, name in ipairs(zdotdir and zdotdir:sub(1, 1) == "/" and floors.ZDOTDIR_FILES or {}) do
    out[#out + 1] = zdotdir .. "/" .. name
  end
  for i, path in ipairs(out) do out[i] = paths.normalise(path, source.machine) or path end
  return out
end

-- A link on the way, or nothing there.
local function of_disk(source, rule)
  local path = rule.under or rule.socket
  if not path then return nil end
  local real = source.fs.realpath(path)
  if not real then return rule.under and path .. " does not exist" or nil end
  if paths.normalise(real, source.machine) ~= paths.normalise(path, source.machine) then
    return ("a link leads %s to %s"):format(path, real)
  end
  return nil
end

---Why a rule covers nothing.
---@param source efr.sbx.AllowSource
---@param rule table
---@return string? reason
function M.problem(source, rule)
  return of_disk(source, rule) or always.problem(always.setting {
    machine = source.machine, rules = source.config:get("permissions.rules"),
    more_floors = M.floors(source),
  }, rule)
end

---The rules of the settings, each with its `cite`, and with `problem` when it covers nothing.
---@param source efr.sbx.AllowSource
---@param more_floors string[]  of M.floors
---@return table[]
function M.rules(source, more_floors)
  local known = source.config:get("sandbox.allow") or {}
  if #known == 0 then return {} end
  local on = always.setting {
    machine = source.machine, rules = source.config:get("permissions.rules"),
    more_floors = more_floors,
  }
  local out = {}
  for i, rule in ipairs(known) do
    local one = {
      index = rule.index, kind = rule.kind, under = rule.under, project = rule.project,
      host = rule.host, port = rule.port, socket = rule.socket,
    }
    one.cite = allow.cite(one, source.home)
    one.problem = of_disk(source, one) or always.problem(on, one)
    out[i] = one
  end
  return out
end

return M
