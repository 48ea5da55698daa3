-- Owns: the list of providers, by id, each made once.
-- Must not know: what a provider does. Runs in efrd, on the loop thread.

local demo = require "efr.model.demo"
local openai_compatible = require "efr.model.openai_compatible"
local scripted = require "efr.model.scripted"

local M = {}

local MAKERS <const> = {
  [openai_compatible.ID] = openai_compatible,
  [scripted.ID] = scripted,
}

---@class efr.Providers
local Providers = {}
Providers.__index = Providers

---The providers of one daemon.
---@param app table  ports, config, paths, env, version
---@return efr.Providers
function M.new(app)
  local deps = {
    ports = app.ports,
    config = function() return app.config end,
    secrets_dir = app.paths.data .. "/secrets",
    home = app.env.HOME,
    version = app.version,
    ca_file = app.env.SSL_CERT_FILE,
    demo = demo.answer,
  }
  return setmetatable({ deps = deps, made = {} }, Providers)
end

---The provider of an id, or nil.
---@param id string
---@return table|nil
function Providers:get(id)
  local maker = MAKERS[id]
  if not maker then return nil end
  self.made[id] = self.made[id] or maker.new(self.deps)
  return self.made[id]
end

---The provider that the settings name, or nil and its name.
---@return table|nil provider
---@return string name
function Providers:active()
  local name = self.deps.config():get("model.provider")
  return self:get(name), name
end

---The ids, sorted.
---@return string[]
function Providers.ids()
  local out = {}
  for id in pairs(MAKERS) do out[#out + 1] = id end
  table.sort(out)
  return out
end

return M
