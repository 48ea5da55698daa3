-- The settings that are in force: read at the start, read again on SIGHUP, admin.config_reload and
-- a change of the projects. An error keeps the old ones; a key that needs a restart keeps its
-- running value. While work in full mode runs, a key that would let more run without a question
-- keeps its value too, until the last of it has ended; what the change makes stricter applies.
-- Knows nothing of what a setting does. Main thread of efrd; nothing here waits.
local file = require "efr.config.file"
local load = require "efr.config.load"
local loosens = require "efr.config.loosens"

local M = {}

-- What everybody holds as app.config: stays the same object over reloads.
local Settings = {}
Settings.__index = Settings

--- The effective value of a setting, such as "permissions.mode".
function Settings:get(name)
  local kept = self.kept[name]
  if kept then
    return kept.value
  end
  return (self.held[name] and self.first or self.current):get(name)
end

--- Where the value comes from.
function Settings:source(name)
  local kept = self.kept[name]
  if kept then
    return kept.source
  end
  return (self.held[name] and self.first or self.current):source(name)
end

--- All settings, as config.load's :all().
function Settings:all()
  local list = self.current:all()
  for _, entry in ipairs(list) do
    entry.value, entry.source = self:get(entry.name), self:source(entry.name)
  end
  return list
end

--- Names of the settings that wait for a restart, sorted.
function Settings:restart_needed()
  local names = {}
  for name in pairs(self.held) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- Names of the settings that wait for the end of the work in full mode, sorted.
function Settings:waiting()
  local names = {}
  for name in pairs(self.kept) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- Says who knows whether work in full mode runs.
--- @param fn fun(): boolean
function Settings:watch_full(fn)
  self.full_runs = fn
end

--- Calls `fn(settings)` after each reload that was applied.
function Settings:on_change(fn)
  self.listeners[#self.listeners + 1] = fn
end

-- The values that hold although the file has looser ones now.
local function kept_values(self, fresh)
  local out = {}
  if not self.full_runs() then
    return out
  end
  local function before(name)
    return self:get(name)
  end
  local function after(name)
    return fresh:get(name)
  end
  for _, name in ipairs(loosens.names(self.schema.order, before, after)) do
    local value = loosens.waiting(name, before(name), after(name))
    out[name] = { value = value, source = self:source(name) }
  end
  return out
end

local function read(self)
  local text, err, code = file.read(self.fs, self.path)
  if err then
    return nil, ("%s: %s"):format(self.path, err), code
  end
  return load.load {
    schema = self.schema, home = self.home, text = text, path = self.path, env = self.env,
    flags = self.flags,
  }
end

--- Reads config.toml again.
--- @return true|nil applied, string|nil message  the old settings stay
function Settings:reload()
  local fresh, err, code, place = read(self)
  if not fresh then
    self.reload_error, self.error_place = err, place
    self.log:error("config: %s; the old settings stay", err)
    return nil, err, code
  end
  self.reload_error, self.error_place = nil, nil
  local kept = kept_values(self, fresh)
  self.held = {}
  for _, name in ipairs(load.restart_needed(self.first, fresh)) do
    self.held[name] = true
  end
  self.current, self.kept = fresh, kept
  self.log:info("config read again")
  if next(kept) then
    self.log:info("wait for the end of the work in full mode: %s",
      table.concat(self:waiting(), ", "))
  end
  for _, fn in ipairs(self.listeners) do
    fn(self)
  end
  return true
end

--- @class efr.daemon.SettingsDeps
--- @field fs table
--- @field log table
--- @field schema table      of config.schema
--- @field path string       config.toml
--- @field home string
--- @field env table         for EFR_LOG
--- @field flags table

--- Reads the settings for the first time.
--- @param deps efr.daemon.SettingsDeps
--- @return table|nil settings, string|nil message, string|nil code
function M.new(deps)
  local self = setmetatable({
    fs = deps.fs, log = deps.log, schema = deps.schema, path = deps.path, home = deps.home,
    env = deps.env, flags = deps.flags, held = {}, kept = {}, listeners = {},
    full_runs = function()
      return false
    end,
  }, Settings)
  local first, err, code = read(self)
  if not first then
    return nil, err, code
  end
  self.first, self.current = first, first
  return self
end

return M
