-- Owns: the provider `openai-compatible`: chat completions of Ollama, llama.cpp, vLLM, OpenRouter
-- and the like. Base URL and model list come from the settings, the key from the secret store.
-- Must not know: turns, permissions, tools. Runs in efrd, on the loop thread.

local async = require "efr.util.async"
local chat_request = require "efr.model.chat_request"
local chat_stream = require "efr.model.chat_stream"
local errors = require "efr.model.errors"
local secrets = require "efr.model.secrets"
local sse = require "efr.model.sse"
local transport = require "efr.model.transport"

local M = {}

M.ID = "openai-compatible" ---@type string

---Window of a model that the settings say nothing about.
M.DEFAULT_WINDOW = 128000 ---@type integer

local REMEMBER_US <const> = 5 * 60 * 1000000

---@class efr.OpenaiCompatible
local Provider = {}
Provider.__index = Provider

---The provider.
---@param deps table  ports (http, sys, json, text, fs), config, secrets_dir, version
---@return efr.OpenaiCompatible
function M.new(deps)
  return setmetatable({
    id = M.ID,
    deps = deps,
    default = nil, -- {base, id, until_us}
  }, Provider)
end

-- The settings of a provider apply at the start of efrd.
local function waits_for_restart(config)
  for _, name in ipairs(config:restart_needed()) do
    if name == "openai_compatible.base_url" or name == "model.provider" then return name end
  end
end

local function base_url(self)
  local config = self.deps.config()
  local url = config:get("openai_compatible.base_url")
  local waits = not url and waits_for_restart(config)
  if waits then
    return nil, errors.new("NotConfigured", ("the new %s applies after a restart of efrd: kill %d,"
      .. " and send it again"):format(waits, self.deps.ports.sys.getpid()))
  elseif not url or url == "" then
    return nil, errors.new("NotConfigured", "no model server is set: put base_url under"
      .. " [openai_compatible] into config.toml, for example http://localhost:11434/v1")
  end
  return (url:gsub("/+$", ""))
end

local function headers(self, extra, key)
  local out = { "User-Agent: efr/" .. self.deps.version, table.unpack(extra) }
  if key then out[#out + 1] = "Authorization: Bearer " .. key end
  return out
end

-- The key of the secret store, or nil when there is none; a store that refuses is an error.
local function stored_key(self)
  local secret, message, code = secrets.read(self.deps.ports, self.deps.secrets_dir, M.ID)
  if secret then return secret.key end
  if code == "ENOENT" then return nil end
  return nil, errors.new("Token", "read the key of openai-compatible: " .. message)
end

local function entry_of(self, id)
  for _, entry in ipairs(self.deps.config():get("openai_compatible.models") or {}) do
    if entry == id then return { id = id } end
    if type(entry) == "table" and entry.id == id then return entry end
  end
  return nil
end

---The context window of a model, in tokens.
---@param model string
---@return integer
function Provider:window(model)
  local entry = entry_of(self, model)
  return entry and entry.context_window or M.DEFAULT_WINDOW
end

---What one answer may have at most, from the settings, or nil.
---@param model string
---@return integer|nil
function Provider:max_output_tokens(model)
  local entry = entry_of(self, model)
  return entry and entry.max_output_tokens
end

---Which file-edit tool this provider offers.
function Provider.edit_tool()
  return "edit"
end

---A message as a request sends it: the text that stands in the history from then on.
---@param message table  canonical
---@return string|nil text
---@return string? why
function Provider:render(message)
  local ok, text = pcall(chat_request.message, self.deps.ports.json, message)
  if not ok then return nil, text end
  return text
end

---Asks the server for its models with a given key. Waits. Also the check of a key at login.
---@param key? string
---@return string[]|nil ids
---@return efr.ProviderError|nil err
function Provider:fetch_models(key)
  local base, err = base_url(self)
  if not base then return nil, err end
  local value
  value, err = transport.get_json(self.deps.ports, {
    url = base .. "/models",
    base_url = base,
    headers = headers(self, { "Accept: application/json" }, key),
    ca_file = self.deps.ca_file,
  })
  if err then return nil, err end
  local list = type(value) == "table" and (value.data or value.models)
  local ids = {}
  for _, model in ipairs(type(list) == "table" and list or {}) do
    local id = type(model) == "table" and (model.id or model.name) or model
    if type(id) == "string" and id ~= "" then ids[#ids + 1] = id end
  end
  return ids
end

---The model ids of this provider: those of the settings, else what the server lists. Waits.
---@return string[]|nil ids
---@return efr.ProviderError|nil err
function Provider:models()
  local configured = self.deps.config():get("openai_compatible.models")
  if configured and #configured > 0 then
    local ids = {}
    for i, entry in ipairs(configured) do ids[i] = type(entry) == "table" and entry.id or entry end
    return ids
  end
  local key, err = stored_key(self)
  if err then return nil, err end
  return self:fetch_models(key)
end

---The model of a turn that names none: the first of the list. Waits, but remembers the answer for
---some minutes, so that turns do not ask each time.
---@return string|nil id
---@return efr.ProviderError|nil err
function Provider:default_model()
  local base, now = base_url(self), self.deps.ports.sys.now_us()
  local configured = self.deps.config():get("openai_compatible.models")
  local known = not configured and self.default
  if known and known.base == base and now < known.until_us then return known.id end
  local ids, err = self:models()
  if not ids then return nil, err end
  if not ids[1] then
    return nil, errors.new("UnknownModel", "the model server lists no model; set model.name")
  end
  -- A list of the settings costs nothing to read, and must count at once when it changes.
  if not configured then
    self.default = { base = base, id = ids[1], until_us = now + REMEMBER_US }
  end
  return ids[1]
end

local function run(self, request, emit, flight)
  local base, err = base_url(self)
  if not base then return err end
  local key
  key, err = stored_key(self)
  if err then return err end
  local ports = self.deps.ports
  local parser = sse.new({ max_bytes = transport.MAX_BYTES })
  local stream = chat_stream.new(ports.json, emit, function() return ports.sys.uuid7() end)
  local broken
  local function on_data(bytes)
    if broken then return end
    local events, message = parser:feed(bytes)
    if not events then broken = errors.new("InvalidStream", message) end
    for _, event in ipairs(events or {}) do
      broken = stream:take(event.data)
      if broken then break end
    end
    -- Nothing of a broken answer is worth waiting for; a whole one may close in its own time.
    if broken then
      transport.cancel(flight)
    elseif stream.finished then
      transport.let_go(flight)
    end
  end
  err = transport.send(ports, {
    method = "POST",
    url = base .. "/chat/completions",
    base_url = base,
    headers = headers(self, { "Content-Type: application/json", "Accept: text/event-stream" }, key),
    body = chat_request.body(ports.json, request),
    ca_file = self.deps.ca_file,
    model = request.model,
  }, on_data, flight)
  if broken then return broken end
  if err and not stream.finished then return err end
  return stream:finish()
end

---Starts one answer. Events come on the loop thread, the last is `done` or `error`.
---@param request table  model, system, sent (texts of render), tools, max_output_tokens, effort
---@param on_event fun(event: table)
---@return {cancel: fun()} handle  after cancel no event follows
function Provider:start(request, on_event)
  local flight, over = {}, false
  local function emit(event)
    if not over then on_event(event) end
  end
  async.spawn(function()
    local ok, err = pcall(run, self, request, emit, flight)
    if not ok then err = errors.new("InvalidStream", "internal: " .. tostring(err)) end
    if err and err.class == "UnknownModel" then self.default = nil end
    if err then emit(err) end
    over = true
  end)
  return {
    cancel = function()
      over = true
      transport.cancel(flight)
    end,
  }
end

return M
