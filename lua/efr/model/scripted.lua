-- Owns: the provider `scripted`, which plays a Lua file instead of asking a model: the default of
-- `./dev demo`, of the end to end tests, and a way to automate without a model.
-- Must not know: turns, permissions, tools. Runs in efrd, on the loop thread.
--
-- The file returns a function (request) -> answer, or a list of answers that are played in order.
-- answer = {text?, calls? = {{name, input}}, stop?, delay_ms?, chunk?, usage?, fail?}; request =
-- {messages, tools, model, turn, call}. `chunk` is how many characters come at once, `delay_ms` the
-- pause before each piece; `fail` is a class of model/errors or {class, message?, status?,
-- retry_after_ms?} and comes after the text.
--
-- Policy: the file runs in a sealed environment of pure functions (no io, os, debug, load,
-- package, no randomness), loaded through the port `load_chunk`. An answer depends on nothing but
-- the request: a list is counted by the requests that the history shows. A wrong answer is an
-- error of the provider that names the file and, where Lua knows it, the line.

local async = require "efr.util.async"
local errors = require "efr.model.errors"

local M = {}

M.ID = "scripted" ---@type string
M.WINDOW = 128000 ---@type integer

local MODELS <const> = { "scripted", "scripted-patch" }
local MAX_FILE <const> = 4 * 1024 * 1024

local STOPS <const> = { end_turn = true, tool_use = true, max_tokens = true, content_filter = true }
local USAGE <const> = {
  "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cache_write_tokens",
  "cache_write_1h_tokens",
}

---@class efr.Scripted
local Provider = {}
Provider.__index = Provider

---The provider.
---@param deps table  ports (fs, json, sys, load_chunk), config, home, demo (the embedded script)
---@return efr.Scripted
function M.new(deps)
  return setmetatable({ id = M.ID, deps = deps, loaded = nil }, Provider)
end

-- What a script may use. Fresh for each load, so that one script cannot change another's tables.
local function sealed_env()
  local env = {
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall,
    select = select, tonumber = tonumber, tostring = tostring, type = type, _VERSION = _VERSION,
    setmetatable = setmetatable, getmetatable = getmetatable, rawequal = rawequal, rawget = rawget,
    rawlen = rawlen, rawset = rawset,
  }
  for _, name in ipairs({ "string", "table", "utf8", "math" }) do
    local copy = {}
    for key, value in pairs(({ string = string, table = table, utf8 = utf8, math = math })[name]) do
      copy[key] = value
    end
    env[name] = copy
  end
  env.math.random, env.math.randomseed = nil, nil
  env.string.dump = nil
  -- A string's metatable is shared with the daemon, so a script may not reach it.
  env.getmetatable = function(value)
    if type(value) == "table" then return getmetatable(value) end
    return nil
  end
  env._G = env
  return env
end

local function bad(file, text)
  return errors.new("InvalidStream", ("the script %s %s"):format(file, text))
end

-- Loads the file of the settings, again when its time or size changed. Returns the script
-- (function or list) and the file's name.
local function load_file(self, path)
  local ports = self.deps.ports
  local info, message = ports.fs.stat(path)
  if not info then return nil, bad(path, "cannot be read: " .. tostring(message)) end
  local stamp = ("%d %d %d"):format(info.mtime_us, info.size, info.ino)
  local loaded = self.loaded
  if loaded and loaded.path == path and loaded.stamp == stamp then return loaded.script, path end
  local text
  text, message = ports.fs.read_file(path, MAX_FILE)
  if not text then return nil, bad(path, "cannot be read: " .. tostring(message)) end
  local chunk
  chunk, message = ports.load_chunk(text, "@" .. path, sealed_env())
  if not chunk then return nil, bad(path, "is no Lua: " .. tostring(message)) end
  local ok, script = pcall(chunk)
  if not ok then return nil, bad(path, "failed: " .. tostring(script)) end
  if type(script) ~= "function" and type(script) ~= "table" then
    return nil, bad(path, "must return a function or a list of answers, not " .. type(script))
  end
  self.loaded = { path = path, stamp = stamp, script = script }
  return script, path
end

local function script_of(self)
  local path = self.deps.config():get("scripted.file")
  if not path or path == "" then return self.deps.demo, "of the demo" end
  if path:sub(1, 2) == "~/" then path = self.deps.home .. path:sub(2) end
  return load_file(self, path)
end

-- Every request adds one user message (a prompt or the results of a round), also after a failure.
local function request_number(messages)
  local count = 0
  for _, message in ipairs(messages) do
    if message.role == "user" then count = count + 1 end
  end
  return count
end

local function is_count(value, least)
  return math.type(value) == "integer" and value >= least
end

local function check_calls(calls)
  if type(calls) ~= "table" then return "calls must be a list" end
  for i, call in ipairs(calls) do
    if type(call) ~= "table" then return ("calls[%d] must be a table"):format(i) end
    if type(call.name) ~= "string" or call.name == "" then
      return ("calls[%d].name must be a text"):format(i)
    end
    if call.input ~= nil and type(call.input) ~= "table" then
      return ("calls[%d].input must be a table"):format(i)
    end
  end
  if #calls == 0 and next(calls) ~= nil then return "calls must be a list" end
  return nil
end

local function check_fail(fail)
  local class = type(fail) == "table" and fail.class or fail
  if not errors.is_class(class) then
    return "fail must name an error class such as \"Overloaded\""
  end
  return nil
end

local function check_usage(usage)
  if type(usage) ~= "table" then return "usage must be a table" end
  for _, key in ipairs(USAGE) do
    if usage[key] ~= nil and not is_count(usage[key], 0) then
      return ("usage.%s must be a whole number"):format(key)
    end
  end
  return nil
end

-- What is wrong with a member of an answer, or nil; in the order in which they are named.
local MEMBERS <const> = {
  { "text", function(value)
    if type(value) == "string" and utf8.len(value) then return nil end
    return "text must be a text in UTF-8"
  end },
  { "stop", function(value) return not STOPS[value] and "stop is unknown" or nil end },
  { "delay_ms", function(value)
    return not is_count(value, 0) and "delay_ms must be a whole number" or nil
  end },
  { "chunk", function(value)
    return not is_count(value, 1) and "chunk must be a whole number above 0" or nil
  end },
  { "calls", check_calls },
  { "fail", check_fail },
  { "usage", check_usage },
}

local function check_answer(answer)
  if type(answer) ~= "table" then return "it gave " .. type(answer) .. " instead of an answer" end
  for _, member in ipairs(MEMBERS) do
    local value = answer[member[1]]
    local wrong = value ~= nil and member[2](value)
    if wrong then return wrong end
  end
  return nil
end

-- A deep copy, so that a script cannot change what the daemon keeps, and the other way round.
local function copy(value, seen)
  if type(value) ~= "table" then return value end
  seen = seen or {}
  if seen[value] then return seen[value] end
  local out = {}
  seen[value] = out
  for key, item in pairs(value) do out[copy(key, seen)] = copy(item, seen) end
  return out
end

-- The messages of a request, fresh each time.
local function messages_of(self, request)
  local text = "[" .. table.concat(request.sent, ",") .. "]"
  return assert(self.deps.ports.json.decode(text))
end

-- What the script sees of a request. The messages are read when it asks for them.
local function view_of(self, request)
  local view = {
    tools = copy(request.tools), model = request.model, turn = request.turn, call = request.call,
  }
  local function read_messages()
    if rawget(view, "messages") == nil then view.messages = messages_of(self, request) end
  end
  return setmetatable(view, {
    __index = function(_, key)
      if key ~= "messages" then return nil end
      read_messages()
      return rawget(view, "messages")
    end,
    __pairs = function()
      read_messages()
      return next, view, nil
    end,
  })
end

-- The answer to a request and the file that gave it, or nil and an error.
local function ask(self, request)
  local script, file = script_of(self)
  if not script then return nil, file end
  local answer
  if type(script) == "table" then
    local number = request_number(messages_of(self, request))
    answer = script[number]
    if answer == nil then return nil, bad(file, ("has no answer number %d"):format(number)) end
  else
    local ok, value = pcall(script, view_of(self, request))
    if not ok then return nil, bad(file, "failed: " .. tostring(value)) end
    answer = value
  end
  local wrong = check_answer(answer)
  if wrong then
    return nil, bad(file, ("answered turn %s, call %s wrongly: %s"):format(
      tostring(request.turn), tostring(request.call), wrong))
  end
  return answer, file
end

-- Cuts a text into pieces of `size` characters.
local function pieces_of(text, size)
  if text == "" then return {} end
  if not size then return { text } end
  local out, from = {}, 1
  while from <= #text do
    local to = utf8.offset(text, size + 1, from) or #text + 1
    out[#out + 1] = text:sub(from, to - 1)
    from = to
  end
  return out
end

local function estimate(json, value)
  return (#(json.encode(value) or "") + 3) // 4
end

local function fail_event(fail, model)
  local spec = type(fail) == "table" and fail or { class = fail }
  return errors.new(spec.class, spec.message or ("the script plays " .. spec.class), {
    status = spec.status,
    retry_after_ms = spec.retry_after_ms,
    model = spec.class == "UnknownModel" and model or nil,
  })
end

local function play_calls(self, answer, file, emit)
  for i, call in ipairs(answer.calls or {}) do
    local input = copy(call.input or {})
    local raw, why = self.deps.ports.json.encode(input, { sort = true })
    if not raw then
      return bad(file, ("gave calls[%d].input that is no JSON: %s"):format(i, why))
    end
    -- Read back, so that the input is what a model's arguments would be.
    input = self.deps.ports.json.decode(raw)
    local id = self.deps.ports.sys.uuid7()
    emit({ kind = "tool_call_start", index = i - 1, call_id = id, name = call.name })
    emit({ kind = "tool_call_delta", index = i - 1, delta = raw })
    emit({
      kind = "tool_call_end",
      index = i - 1,
      call_id = id,
      name = call.name,
      input = input,
      raw = raw,
    })
  end
  return nil
end

-- Tokens as the script says, else an estimate of what was sent and answered.
local function usage_of(self, request, answer)
  local usage = { kind = "usage" }
  for _, key in ipairs(USAGE) do usage[key] = answer.usage and answer.usage[key] or 0 end
  if not answer.usage then
    local json = self.deps.ports.json
    local bytes = 0
    for _, text in ipairs(request.sent) do bytes = bytes + #text end
    usage.input_tokens = (bytes + 3) // 4
    usage.output_tokens = estimate(json, { answer.text or "", answer.calls })
  end
  return usage
end

local function play(self, request, emit, state)
  local answer, file = ask(self, request)
  if not answer then return emit(file) end
  local function pause()
    if (answer.delay_ms or 0) > 0 then async.sleep(answer.delay_ms) end
    return state.cancelled
  end
  for _, piece in ipairs(pieces_of(answer.text or "", answer.chunk)) do
    if pause() then return end
    emit({ kind = "text_delta", text = piece })
  end
  if pause() then return end
  if answer.fail ~= nil then return emit(fail_event(answer.fail, request.model)) end
  local err = play_calls(self, answer, file, emit)
  if err then return emit(err) end
  emit(usage_of(self, request, answer))
  local has_calls = answer.calls and #answer.calls > 0
  emit({ kind = "done", stop_reason = answer.stop or (has_calls and "tool_use" or "end_turn") })
end

---A message as a request holds it: its JSON text.
---@param message table  canonical
---@return string|nil text
---@return string? why
function Provider:render(message)
  return self.deps.ports.json.encode(message, { sort = true })
end

---The ids of this provider.
---@return string[]
function Provider.models()
  return { table.unpack(MODELS) }
end

---@return string
function Provider.default_model()
  return MODELS[1]
end

---Which file-edit tool a model offers.
---@param model string
---@return "edit"|"apply_patch"
function Provider.edit_tool(_, model)
  return model == "scripted-patch" and "apply_patch" or "edit"
end

---@return integer
function Provider.window()
  return M.WINDOW
end

---@return nil
function Provider.max_output_tokens()
  return nil
end

---Starts one answer. Events come on the loop thread, the last is `done` or `error`.
---@param request table  model, sent (texts of render), tools, turn, call
---@param on_event fun(event: table)
---@return {cancel: fun()} handle  after cancel no event follows
function Provider:start(request, on_event)
  local state = { cancelled = false }
  local function emit(event)
    if not state.cancelled then on_event(event) end
  end
  async.spawn(function()
    if request.model ~= MODELS[1] and request.model ~= MODELS[2] then
      return emit(errors.new("UnknownModel",
        ("the provider scripted has no model %s"):format(tostring(request.model)),
        { model = request.model }))
    end
    local ok, why = pcall(play, self, request, emit, state)
    if not ok then emit(errors.new("InvalidStream", "internal: " .. tostring(why))) end
  end)
  return { cancel = function() state.cancelled = true end }
end

return M
