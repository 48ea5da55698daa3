-- What leaves the sandbox, in a question's words and in the record of a conversation.
-- Owns: titles, the rows of programs and facts, the lines of `efr history --verbose`.
-- Must not know: columns, keys, the wire. Pure; runs in `efr`.
--
-- What came over the wire may be malformed inside: such a part is left out.

local changes = require "efr.cli.view.changes"

local M = {}

local function text_of(value)
  return type(value) == "string" and value ~= "" and value or nil
end

local function list_of(value)
  return type(value) == "table" and value or {}
end

local function path_of(grant, home)
  local path = text_of(grant.path)
  return path and changes.path(path, home) or "?"
end

-- Grants ------------------------------------------------------------------------------------------

-- By kind: what a yes opens. `each` stands for the paths of all grants of that kind.
local TITLES <const> = {
  write = "%s writable", unmask = "%s readable", device = "%s", socket = "the socket %s",
  bus = "the %s bus", host = "%s", open_network = "full network",
  network_view = "the host's network", userns = "new user namespaces",
}
local ORDER <const> = {
  "write", "unmask", "device", "socket", "bus", "host", "open_network", "network_view", "userns",
}

local function named(grant, home)
  if grant.kind == "bus" then
    return text_of(grant.bus) or "?"
  elseif grant.kind == "host" then
    return ("%s:%s"):format(text_of(grant.host) or "?", math.tointeger(grant.port) or "?")
  end
  return path_of(grant, home)
end

--- The grants in words, one for each kind.
--- @return string[]
function M.grant_words(grants, home)
  local by_kind, out = {}, {}
  for _, grant in ipairs(list_of(grants)) do
    if type(grant) == "table" and TITLES[grant.kind] then
      by_kind[grant.kind] = by_kind[grant.kind] or {}
      table.insert(by_kind[grant.kind], named(grant, home))
    end
  end
  for _, kind in ipairs(ORDER) do
    local names = by_kind[kind]
    if names then
      local form = TITLES[kind]
      out[#out + 1] = form:find("%s", 1, true) and form:format(table.concat(names, ", ")) or form
    end
  end
  return out
end

--- The title of a question about exits; nil: the tool's own title says it.
function M.title(exit, home)
  local launch = type(exit.launch) == "table" and exit.launch.kind or exit.launch
  if launch == "unsandboxed" then
    return "allow outside the sandbox"
  end
  local words = launch == "contained" and M.grant_words(exit.grants, home) or {}
  if #words == 0 then
    return nil
  end
  return ("allow %s for this call"):format(table.concat(words, " and "))
end

--- Whether a yes gives the call all of the user's rights.
function M.has_full_rights(exit)
  return type(exit.launch) == "table" and exit.launch.kind == "unsandboxed"
end

M.FULL_RIGHTS = "runs with your full rights: files, secrets, network"

-- Programs ----------------------------------------------------------------------------------------

--- The programs of a line: all of them in one row, then one row for each that is not trusted.
--- @return string? all, string[] untrusted
function M.program_rows(programs, home)
  local words, untrusted = {}, {}
  for _, one in ipairs(list_of(programs)) do
    local word = type(one) == "table" and text_of(one.word)
    if word then
      local resolved, why = text_of(one.resolved), text_of(one.untrusted)
      if one.builtin then
        word = ("(%s)"):format(word)
      elseif not resolved then
        word = word .. " (not found)"
      elseif why then
        untrusted[#untrusted + 1] =
          ("%s is %s (untrusted: %s)"):format(word, changes.path(resolved, home), why)
      end
      words[#words + 1] = word
    end
  end
  return #words > 0 and "programs: " .. table.concat(words, ", ") or nil, untrusted
end

-- Records -----------------------------------------------------------------------------------------

local JUDGE <const> = {
  user = "you", floor = "efr (a floor)", classifier = "the reviewer", always = "your always rule",
  full = "full mode", rule = "your rule",
}
local VERDICT <const> = { allow = "allowed", deny = "refused", ask_user = "unsure" }

--- One verdict in a line.
function M.verdict_line(event)
  local judge, verdict = text_of(event.judge) or "?", text_of(event.verdict) or "?"
  if judge == "always" and text_of(event.rule) then
    return "allowed by your rule " .. event.rule
  end
  local out = ("exit %s by %s"):format(VERDICT[verdict] or verdict, JUDGE[judge] or judge)
  if text_of(event.rule) then
    out = out .. " " .. event.rule
  end
  for _, name in ipairs({ "risk", "category", "rationale", "model" }) do
    if text_of(event[name]) then
      out = ("%s; %s %s"):format(out, name, event[name])
    end
  end
  return out
end

--- What became of a rule that was to be saved, from the answer of approval.respond.
--- @return string
function M.saved_words(reply)
  local saved = type(reply.rule_saved) == "table" and reply.rule_saved
  if saved then
    return ("saved as sandbox.allow[%s]: %s"):format(math.tointeger(saved.index) or "?",
      text_of(saved.words) or "?")
  end
  return ("rule not saved: %s; the command ran once"):format(text_of(reply.rule_error) or "?")
end

local function one_line(value)
  return (value:gsub("\n+$", ""):gsub("\n", "; "))
end

local MARKS <const> = {
  "class", "in_write_root", "floor", "synced", "exists", "named_in_user_messages",
}

local function target_line(target, home)
  local out = changes.path(text_of(target.path) or "?", home)
  local marks = {}
  for _, name in ipairs(MARKS) do
    local value = target[name]
    if text_of(value) then
      marks[#marks + 1] = value
    elseif value == true then
      marks[#marks + 1] = (name:gsub("_", " "))
    end
  end
  return #marks > 0 and ("%s (%s)"):format(out, table.concat(marks, ", ")) or out
end

local function exit_line(exit, home)
  local target = changes.path(text_of(exit.target) or "?", home)
  return ("exit %s %s, %s, decided by %s"):format(text_of(exit.kind) or "?", target,
    text_of(exit.source) or "?", text_of(exit.who) or "?")
end

--- The lines of an event exit_requested: everything but the user's own messages, which are counted.
--- @return string[]
function M.record_lines(event, home)
  local record = list_of(event.record)
  local action, facts, out = list_of(record.action), list_of(record.facts), {}
  for _, exit in ipairs(list_of(action.exits)) do
    out[#out + 1] = exit_line(list_of(exit), home)
  end
  if text_of(action.line) then
    out[#out + 1] = "line: " .. one_line(action.line)
  end
  if text_of(action.cwd) then
    out[#out + 1] = "in: " .. changes.path(action.cwd, home)
  end
  local grants = M.grant_words(event.grants, home)
  if #grants > 0 then
    out[#out + 1] = "grants: " .. table.concat(grants, ", ")
  end
  for _, target in ipairs(list_of(facts.targets)) do
    out[#out + 1] = "target: " .. target_line(list_of(target), home)
  end
  for _, host in ipairs(list_of(facts.hosts)) do
    out[#out + 1] = "host: " .. (text_of(list_of(host).host) or "?")
  end
  local programs, untrusted = M.program_rows(facts.programs, home)
  out[#out + 1] = programs
  for _, row in ipairs(untrusted) do
    out[#out + 1] = row
  end
  local refusals = math.tointeger(facts.refusals_in_a_row)
  if refusals then
    out[#out + 1] = ("refusals in a row: %d"):format(refusals)
  end
  out[#out + 1] = ("your messages in the record: %d"):format(#list_of(record.user_messages))
  return out
end

return M
