-- Owns: the user's always rules around a call: the facts about them, the one rule that a question
-- offers, and its way into config.toml.
-- Must not know: what a rule covers (perm.always), who asks. Runs in efrd; save waits.
--
-- Policy: a rule is offered only when it, with those that are there, would cover the whole call.
-- It is saved after the answer was recorded, and the call runs once whatever comes of that.

local allow = require "efr.config.allow"
local always = require "efr.perm.always"
local async = require "efr.util.async"
local edit = require "efr.config.edit"
local engine = require "efr.perm.engine"
local example = require "efr.config.example"
local file = require "efr.config.file"
local list = require "efr.util.list"
local load = require "efr.config.load"
local machine = require "efr.conv.machine"
local sbx_allow = require "efr.sbx.allow"

local M = {}

local TRIES <const> = 3
local LOCK_TRIES <const> = 20
local LOCK_MS <const> = 50

local function source_of(app, here, path)
  return {
    fs = app.ports.fs, home = app.env.HOME, config = app.config, machine = here,
    path = path or app.env.PATH, zdotdir = app.env.ZDOTDIR,
  }
end

-- The machine of no turn.
local function machine_of(app)
  return machine.facts(app, { project_roots = list.map(app.projects:list(), function(project)
    return project.root
  end) })
end

-- Disabled rules ---------------------------------------------------------------------------------

---Says once in the log which rules cover nothing, and why.
---@param app table
---@param rules table[]
local function warn(app, rules)
  app.warned_rules = app.warned_rules or {}
  for _, rule in ipairs(rules) do
    local words = rule.problem and ("%s is disabled: %s"):format(rule.cite, rule.problem)
    if words and not app.warned_rules[words] then app.log:warn("%s", words) end
    if words then app.warned_rules[words] = true end
  end
end

---Looks at all rules, at the start and after each reload.
---@param app table
function M.look(app)
  if #(app.config:get("sandbox.allow") or {}) == 0 then return end
  local source = source_of(app, machine_of(app))
  warn(app, sbx_allow.rules(source, sbx_allow.floors(source)))
end

-- Around a call ----------------------------------------------------------------------------------

---Adds the facts about the rules to those of a call.
---@param turn efr.Turn
---@param call table
---@param facts efr.Facts
function M.add_facts(turn, call, facts)
  facts.always = {}
  if turn.settings.mode ~= "auto" or call.name ~= "shell" then return end
  if #(turn.app.config:get("sandbox.allow") or {}) == 0 then return end
  local source = source_of(turn.app, call.machine, call.search_path)
  facts.more_floors = sbx_allow.floors(source)
  facts.always = sbx_allow.rules(source, facts.more_floors)
  warn(turn.app, facts.always)
end

---The rule that an answer to the question about a call may save.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return table? rule
---@return string? words
function M.offer(turn, call, decision)
  local usable = call.name == "shell" and decision.mode == "auto" and decision.effect == "ask"
  local rule = usable and always.proposal(decision)
  if not rule then return nil end
  local source = source_of(turn.app, call.machine, call.search_path)
  if sbx_allow.problem(source, rule) then return nil end
  rule.cite = "the new rule"
  local facts = setmetatable({
    always = list.extend(list.copy(call.facts.always or {}), { rule }),
    more_floors = sbx_allow.floors(source),
  }, { __index = call.facts })
  local with = engine.decide(setmetatable({ facts = facts }, { __index = call.decided }))
  local words = allow.words(rule, turn.app.env.HOME)
  -- A name that the file cannot hold, or that a person cannot read as it is, gets no rule.
  local plain = turn.app.ports.text.is_utf8(words) and not words:find("%c")
  if with.effect ~= "contain" or not plain then return nil end
  return rule, words
end

-- Saving -----------------------------------------------------------------------------------------

local function take_lock(app)
  local path = app.paths.state .. "/config.lock"
  for _ = 1, LOCK_TRIES do
    local lock, err, code = app.ports.sys.flock(path)
    if lock or code ~= "EWOULDBLOCK" and code ~= "EAGAIN" then return lock, err end
    async.sleep(LOCK_MS)
  end
  return nil, "another program of efr changes the settings"
end

-- The text with the rule at its end, and the rule's index; one that is there already stays alone.
local function with_rule(app, rule, text)
  local home = app.env.HOME
  local function read(bytes)
    return load.load { schema = app.settings_schema, home = home, text = bytes,
      path = app.files.config }
  end
  text = text or example.text(app.settings_schema)
  local config, err, code = read(text)
  if not config then return nil, err, code end
  local known = config:get("sandbox.allow")
  for _, other in ipairs(known) do
    if allow.same(other, rule) then return text, other.index end
  end
  local fresh
  fresh, err, code = edit.add_entry(text, "sandbox.allow", allow.entry(rule, home))
  if not fresh then return nil, err, code end
  config, err, code = read(fresh)
  if not config then return nil, err, code end
  return fresh, #known
end

local function write(app, rule)
  local lock, why = take_lock(app)
  if not lock then return nil, why end
  local ok, found, code
  for _ = 1, TRIES do
    ok, found, code = file.change(app.ports.fs, app.files.config, function(text)
      return with_rule(app, rule, text)
    end)
    if ok or code ~= "conflict" then break end
  end
  lock:close()
  if not ok then return nil, found end
  return found
end

---Why an answer cannot save a rule; the question stays open.
---@param question table?
---@param params table  of approval.respond
---@param session table
---@return string? message
---@return string? code
function M.refusal(question, params, session)
  local model_side = session.peer and session.peer.model_side
  if session.origin == "phone" or model_side or not session.tty then
    return "a rule is saved from a local terminal only; the question stays open", "forbidden"
  elseif params.decision ~= "allow" or question and not question.rule then
    return "no rule can cover this call; the question stays open", "invalid"
  end
  return nil
end

---Saves a rule at the end of config.toml and reads the settings again. Waits.
---@param app table
---@param rule table
---@return {index: integer, words: string}? saved
---@return string? err
function M.save(app, rule)
  local problem = sbx_allow.problem(source_of(app, machine_of(app)), rule)
  if problem then return nil, problem end
  local index, err = write(app, rule)
  if not index then return nil, err end
  app.reload()
  return { index = index, words = allow.words(rule, app.env.HOME) }
end

return M
