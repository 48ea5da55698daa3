-- Owns: the two ends of a judgement as the permission engine has them: a question out of a call's
-- requirements and its read line, and the engine's input out of an answer.
-- Must not know: the process, time, what the engine makes of it. Runs in efrd and efr. Pure.
--
-- Policy: what an answer may do is bounded here and in the engine. An `allow` opens one command as
-- the strict reading sees it, or exactly one path, and no secret; where the place of a command is
-- not certain it opens nothing, and an `ask` or `deny` then counts for the whole line.

local M = {}

local function words_of(command)
  local words, texts = {}, {}
  for i, word in ipairs(command.words) do
    local known = word.text and not (word.glob or word.home or word.user)
    words[i] = known and word.text or false
    if not words[i] then texts[i] = word.node and word.node.text or word.text end
  end
  return words, texts
end

local function target_of(word)
  return word and word.text and not word.glob and not word.home and word.text or false
end

local function assigns_of(command)
  local out
  for _, assign in ipairs(command.assigns or {}) do
    out = out or {}
    out[assign.name] = assign.op ~= "+=" and target_of(assign.value) or false
  end
  return out
end

local function redirs_of(command)
  local out
  for i, redir in ipairs(command.redirs or {}) do
    out = out or {}
    out[i] = { op = redir.op, fd = math.type(redir.fd) == "integer" and redir.fd or nil,
      target = target_of(redir.target) }
  end
  return out
end

local function add_nodes(node, set, depth)
  if depth > 400 then return set end
  if node.kind == "simple" then set[node] = true end
  for _, child in pairs(node) do
    if type(child) == "table" then add_nodes(child, set, depth + 1) end
  end
  return set
end

-- The commands of the lenient reading as rules see them. One that stands in an inner line (of
-- `sh -c`) has no place in this line.
local function commands_of(line, found)
  local nodes = line.ast and add_nodes(line.ast, {}, 0) or {}
  local out = {}
  for i, command in ipairs(found) do
    local words, texts = words_of(command)
    local node = nodes[command.node] and command.node
    local behind = command.wrappers and command.wrappers[1] and command.wrappers or nil
    out[i] = {
      words = words, texts = texts, assigns = assigns_of(command), redirs = redirs_of(command),
      behind = behind, pos = node and node.pos, stop = node and node.stop,
    }
  end
  return out
end

---@class efr.rules.Asked
---@field requirements table[]  what the call declared, with what its line declared
---@field line efr.perm.Line?  as read
---@field found table[]?  the lenient reading of the line
---@field exits efr.Exit[]?

---The question about a call.
---@param asked efr.rules.Asked
---@param facts table  cwd, mode, tool, origin, project, scratch, home
---@return table question  for client:judge
function M.question(asked, facts)
  local out = { requirements = {}, exits = {} }
  for key, value in pairs(facts) do out[key] = value end
  for _, item in ipairs(asked.requirements) do
    if item.kind == "read" or item.kind == "write" then
      table.insert(out.requirements, { kind = item.kind, path = item.path, tree = item.tree })
    end
  end
  for i, exit in ipairs(asked.exits or {}) do
    out.exits[i] = { kind = exit.kind, target = exit.target, source = exit.source }
  end
  if asked.line then
    out.line, out.parse = asked.line.text, asked.line.ast
    out.commands = commands_of(asked.line, asked.found)
  end
  return out
end

local RESOURCES = {}

function RESOURCES.line(match, question)
  if match.effect == "allow" and not question.parse then return nil end
  return "execute", { any = true }
end

function RESOURCES.path(match)
  if match.path:sub(1, 1) ~= "/" then return nil end
  return match.action, { exact = match.path }
end

function RESOURCES.command(match, question)
  local opens = match.effect == "allow"
  if not match.pos then
    if opens then return nil end
    return "execute", { any = true }
  end
  if opens and question.commands[match.at].behind then return nil end
  return "execute", { place = { pos = match.pos, stop = match.stop, opens = opens } }
end

local function cite(match)
  return ("%s:%d"):format(match.file, match.line)
end

local function because(match)
  if match.why then return match.why end
  return match.id and "your rule " .. match.id or "a rule of yours"
end

---What the engine gets.
---@param answer table?  of client:judge
---@param question table
---@return { rules: table[], exits: table[], failure: string? }? lua  nil: the user has no rules
function M.input(answer, question)
  if not answer then return nil end
  local out = { rules = {}, exits = {}, failure = answer.failed and answer.failed.text }
  for _, match in ipairs(answer.rules) do
    local action, resource = RESOURCES[match.on](match, question)
    if action then
      table.insert(out.rules, { action = action, resource = resource, effect = match.effect,
        cite = cite(match), because = because(match) })
    end
  end
  for i, match in ipairs(answer.exits) do
    local exit = question.exits[match.at]
    out.exits[i] = { kind = exit.kind, target = exit.target, effect = match.effect,
      cite = cite(match) }
  end
  return out
end

---What program knowledge adds to the requirements of a call.
---@param answer table?
---@return table[]
function M.requirements(answer)
  local out, seen = {}, {}
  for _, effect in ipairs(answer and answer.effects or {}) do
    local key = effect.kind .. (effect.path or "")
    if not seen[key] then out[#out + 1] = { kind = effect.kind, path = effect.path } end
    seen[key] = true
  end
  return out
end

return M
