-- Owns: the shape of the user's always rules, `[[sandbox.allow]]`: every refusal, the plain data
-- that the engine gets, and a rule in words and as an entry of the file.
-- Must not know: what a rule covers, files.
-- Runs in efrd and efr. Pure.
--
-- cfg:get("sandbox.allow") is a list of
--   { index = 0, kind = "write", under = "/abs", project = "/abs"? }   project: only in its turns
--   { index = 0, kind = "host", host = "example.org", port = 443 }
--   { index = 0, kind = "socket", socket = "/abs" }
-- Whoever cites a rule names its index, which counts from 0.

local list = require "efr.util.list"
local paths = require "efr.config.paths"
local toml = require "efr.config.toml"

local M = {}

local HTTPS_PORT <const> = 443
local HOST_MAX <const> = 253
local KINDS <const> = { "write", "host", "socket" }

-- The keys of each kind beside `kind`.
local KEYS <const> = {
  write = list.set { "kind", "under", "project" }, host = list.set { "kind", "host", "port" },
  socket = list.set { "kind", "path" },
}

local function bad(owner, key, fmt, ...)
  return nil, fmt:format(...), { owner, key }
end

local function path_of(rule, key, home)
  local value = rule[key]
  if value == nil then return nil, "has no " .. key end
  local path, err
  if type(value) == "string" then path, err = paths.expand(value, home) end
  if path then return path end
  return bad(rule, key, "has %s that %s", key, err or "must be a path")
end

local CHECK <const> = {}

function CHECK.write(rule, home)
  local under, err, at = path_of(rule, "under", home)
  if not under then return nil, err, at end
  local project
  if rule.project ~= nil then
    project, err, at = path_of(rule, "project", home)
    if not project then return nil, err, at end
  end
  return { kind = "write", under = under, project = project }
end

function CHECK.host(rule)
  local host, port = rule.host, rule.port
  if host == nil then return nil, "has no host" end
  local plain = type(host) == "string" and #host <= HOST_MAX
    and host:find("^[%l%d][%l%d%-._]*$") and not host:find("..", 1, true)
    and not host:find("%.$")
  if not plain then
    return bad(rule, "host", "has a host that must be one name in lower case")
  end
  if port ~= nil and (math.type(port) ~= "integer" or port < 1 or port > 65535) then
    return bad(rule, "port", "has a port that must be an integer between 1 and 65535")
  end
  return { kind = "host", host = host, port = port or HTTPS_PORT }
end

function CHECK.socket(rule, home)
  local path, err, at = path_of(rule, "path", home)
  if not path then return nil, err, at end
  return { kind = "socket", socket = path }
end

local function check_rule(rule, home)
  if type(rule) ~= "table" or toml.is_array(rule) then return nil, "must be a table" end
  local kind = rule.kind
  if kind == nil then return nil, "has no kind" end
  if not list.contains(KINDS, kind) then
    return bad(rule, "kind", "has a kind that is none of %s", table.concat(KINDS, ", "))
  end
  for _, key in ipairs(list.keys(rule)) do
    if not KEYS[kind][key] then return bad(rule, key, "has an unknown key '%s'", key) end
  end
  return CHECK[kind](rule, home)
end

---Checks the rules as the TOML reader returns them.
---@param value any
---@param home string
---@return table[]? rules  see above
---@return string? err  words that follow the key's name: `[0] has no kind`
---@return table? at  {table, key} of the reader: the value that is wrong
function M.check(value, home)
  if not toml.is_array(value) then return nil, "must be tables [[sandbox.allow]]" end
  local out = {}
  for i, rule in ipairs(value) do
    local fine, err, at = check_rule(rule, home)
    if not fine then return nil, ("[%d] %s"):format(i - 1, err), at or { value, i } end
    fine.index = i - 1
    out[i] = fine
  end
  return out
end

-- A path as a person writes it.
local function short(path, home)
  if home == "/" then return path end
  if path == home then return "~" end
  if path:sub(1, #home + 1) == home .. "/" then return "~" .. path:sub(#home + 1) end
  return path
end

---A rule in words: `write under ~/notes`.
---@param rule table
---@param home string
---@return string
function M.words(rule, home)
  if rule.kind == "host" then return ("host %s:%d"):format(rule.host, rule.port) end
  if rule.kind == "socket" then return "socket " .. short(rule.socket, home) end
  local words = "write under " .. short(rule.under, home)
  return rule.project and ("%s in %s"):format(words, short(rule.project, home)) or words
end

---How a rule is cited: `sandbox.allow[2]: write under ~/notes`.
---@param rule table
---@param home string
---@return string
function M.cite(rule, home)
  return ("sandbox.allow[%d]: %s"):format(rule.index, M.words(rule, home))
end

---A rule as an entry of the file.
---@param rule table
---@param home string
---@return { [1]: string, [2]: any }[] fields
function M.entry(rule, home)
  if rule.kind == "host" then
    return { { "kind", "host" }, { "host", rule.host }, { "port", rule.port } }
  elseif rule.kind == "socket" then
    return { { "kind", "socket" }, { "path", short(rule.socket, home) } }
  end
  local out = { { "kind", "write" }, { "under", short(rule.under, home) } }
  if rule.project then out[3] = { "project", short(rule.project, home) } end
  return out
end

---Whether two rules say the same.
---@param a table
---@param b table
---@return boolean
function M.same(a, b)
  for _, name in ipairs({ "kind", "under", "project", "host", "port", "socket" }) do
    if a[name] ~= b[name] then return false end
  end
  return true
end

local function object(kind, properties, required)
  properties.kind = { enum = { kind } }
  table.insert(required, 1, "kind")
  return {
    type = "object", properties = properties, required = required, additionalProperties = false,
  }
end

---The JSON schema of the list; arrays in it are plain sequences.
---@return table
function M.json_schema()
  local text, port = { type = "string" }, { type = "integer", minimum = 1, maximum = 65535 }
  return { type = "array", items = { anyOf = {
    object("write", { under = text, project = text }, { "under" }),
    object("host", { host = text, port = port }, { "host" }),
    object("socket", { path = text }, { "path" }),
  } } }
end

return M
