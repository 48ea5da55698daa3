-- The end of `efr run`: what the command did to git settings, the question whether that stays, and
-- the files that run code later.
-- Owns: the words, the one key, and how to put something back by hand. Must not know: how the run
-- went. Loop thread of `efr`; run waits in a task.

local async = require "efr.util.async"
local block = require "efr.cli.view.block"
local keys = require "efr.cli.keys"
local question = require "efr.cli.view.question"
local screen = require "efr.cli.screen"

local M = {}

local WIDE <const> = 1 << 30

-- A word for sh, whatever is in it.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

--- How what lies in quarantine is put back by hand; nil where a name cannot be shown as it is.
local function by_hand(env, quarantined)
  local out, printable = {}, env.ports.text.printable
  for _, item in ipairs(quarantined) do
    if printable(item.from) ~= item.from or printable(item.to) ~= item.to then
      return nil
    end
    local how = item.restored and "-fT" or "-n"
    out[#out + 1] = ("  mv %s -- %s %s"):format(how, quoted(item.to), quoted(item.from))
  end
  table.insert(out, 1, "to put it back:")
  return table.concat(out, "\n")
end

local function put(env, list)
  local style = screen.style(env, 2)
  for _, row in ipairs(list) do
    env:err(style:row(row) .. "\n")
  end
end

local function note(env, item)
  put(env, block.note_rows(item, { cols = WIDE, home = env.home }))
end

local function asked_changes(changes)
  local out = {}
  for _, change in ipairs(changes) do
    if type(change) == "table" and change.quarantined then
      out[#out + 1] = change
    end
  end
  return out
end

-- One key: y puts back, anything else leaves it there. nil: nobody can be asked.
local function ask(env, result)
  local input = env:is_tty(2) and keys.open(env, false)
  if not input then
    return nil
  end
  local card, row = question.card({
    question_id = "run", changes = asked_changes(result.sandbox.surface_changes or {}),
  }, { cols = env.ports.tty.size(2) or 80, home = env.home, answers = true, diff_lines = 0 })
  card[#card + 1] = row
  put(env, card)
  local key = async.await(function(resume)
    input:listen(resume)
  end)
  input:close()
  return key == "y" or key == "Y"
end

local function respond(env, link, run_id, keep)
  local result, message = link:call("sandbox.surface_respond", {
    command_id = env.ports.sys.uuid7(), question_id = run_id, keep = keep,
  })
  if not result then
    env:warn("the answer was not taken: " .. message)
    return false
  end
  for _, item in ipairs(result.failed or {}) do
    note(env, { changed = { changes = { {
      path = item.path, rule = "not_put_back", error = item.reason,
    } } } })
  end
  return keep and not result.failed
end

--- Tells what a run did, and asks.
--- @param env table
--- @param link efr.cli.conn
--- @param run_id string
--- @param result table of run.end
function M.run(env, link, run_id, result)
  local changes = result.sandbox.surface_changes
  if type(changes) == "table" and #changes > 0 then
    note(env, { changed = { changes = changes } })
  end
  local quarantined = result.quarantined
  if type(quarantined) == "table" and #quarantined > 0 then
    local keep = ask(env, result)
    local kept = keep ~= nil and respond(env, link, run_id, keep)
    put(env, { question.answer_row({ state = kept and "kept" or "left" }) })
    if not kept then
      note(env, { quarantined = quarantined })
      local words = by_hand(env, quarantined)
      if words then
        note(env, { text = words, role = "muted" })
      end
    end
  end
  if type(result.surface_files) == "table" and #result.surface_files > 0 then
    note(env, { report = { files = result.surface_files } })
  end
end

return M
