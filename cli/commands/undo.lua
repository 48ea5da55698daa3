-- efr undo: takes back what a turn or an efr run changed: a preview, a question, the result.

local async = require "efr.util.async"
local changes = require "efr.cli.view.changes"
local conn = require "efr.cli.conn"
local rows = require "efr.cli.view.rows"
local screen = require "efr.cli.screen"
local time = require "efr.util.time"

local M = { summary = "take back what the newest turn, or an efr run, changed" }

function M.add(parser)
  parser:option("--turn", "another turn than the newest; see --list"):argname("ID")
  parser:flag("--list", "the turns that can be undone, and which are")
  parser:flag("--redo", "take back the newest undo")
  parser:flag("--dry-run", "show what would be done")
  parser:flag("--force", "also what changed since; the present files go to the trash")
  parser:flag("--yes", "ask nothing")
end

local WORDS <const> = { restore = "restore", trash = "trash", skip = "skip",
  not_covered = "not covered", ref = "ref" }
local INDEX <const> = "your git index is unchanged; git status can show staged changes"
local ROLE <const> = { skip = "warning", not_covered = "warning" }

local function request(env, args, action)
  local cwd = env.ports.uv.cwd()
  return {
    command_id = env.ports.sys.uuid7(), action = action, turn_id = args.turn,
    cwd = cwd and env.ports.fs.realpath(cwd), redo = args.redo or nil, force = args.force or nil,
  }
end

local function say_rows(env, list, to_out)
  local style = screen.style(env, to_out and 1 or 2)
  for _, row in ipairs(list) do
    local line = style:row(row) .. "\n"
    if to_out then env:out(line) else env:err(line) end
  end
end

local function list_turns(env, link, args)
  local found, message, code, data = link:call("turn.undo", request(env, args, "list"))
  if not found then
    return nil, message, code, data
  end
  local now, out = env.ports.sys.now_us(), {}
  for i, item in ipairs(found.turns or {}) do
    local state = item.stopped and "stopped" or item.undone and "undone" or ""
    out[i] = {
      { rows.safe(item.turn_id), "muted" },
      { ("  %-8s %7s  "):format(state, time.span(now - (item.created_at or now))) },
      { rows.safe(item.title or "") },
    }
  end
  if #out == 0 then
    env:say("nothing here can be undone")
  end
  say_rows(env, out, true)
  return 0
end

-- A reference or its place as git's own commands name it, and a commit in short.
local function ref_words(text)
  if not text then
    return "(none)"
  end
  local name = text:match("^ref: (.*)$") or text
  local short = name:match("^refs/heads/(.+)$") or name:match("^refs/(.+)$") or name
  return rows.safe(short:match("^%x+$") and #short >= 40 and short:sub(1, 7) or short)
end

local function entry_row(env, entry)
  local word = WORDS[entry.action] or rows.safe(entry.action)
  local row = { { ("%-11s "):format(word), ROLE[entry.action] } }
  local is_ref = entry.kind == "ref"
  row[2] = { is_ref and ref_words(entry.path) or changes.path(entry.path, env.home), "code" }
  if entry.action == "ref" then
    row[3] = { (" %s -> %s"):format(ref_words(entry.from), ref_words(entry.to)) }
  elseif entry.reason then
    local more = entry.forceable and (is_ref and "; --force moves it" or "; --force takes it too")
    row[3] = { (" (%s%s)"):format(rows.safe(entry.reason), more or ""), "muted" }
  end
  return row
end

local function preview(env, found)
  local head = found.continues and "undo that was cut short" or found.redo and "redo" or "undo"
  local title = found.title and found.title ~= "" and ": " .. found.title or ""
  local has_ref = false
  local out = { { { rows.safe(("%s turn %s%s"):format(head, found.turn_id, title)) } } }
  for _, entry in ipairs(found.entries or {}) do
    out[#out + 1] = entry_row(env, entry)
    has_ref = has_ref or entry.action == "ref"
  end
  if found.more then
    out[#out + 1] = { { ("... %d more files"):format(found.more), "muted" } }
  end
  if has_ref then
    out[#out + 1] = { { INDEX, "muted" } }
  end
  return out
end

-- One key; nil: nobody can be asked.
local function ask(env, word)
  local input = require("efr.cli.keys").open(env, false)
  if not input then
    return nil
  end
  say_rows(env, { { { word .. "? ", "warning" }, { "y", "bold" }, { " yes · ", "muted" },
    { "n", "bold" }, { " no", "muted" } } })
  local key = async.await(function(resume)
    input:listen(resume)
  end)
  input:close()
  return key
end

local function files(count)
  return ("%d file%s"):format(count, count == 1 and "" or "s")
end

local function result_words(env, done)
  local parts, refs = {}, #(done.refs or {})
  local function add(count, text)
    if count > 0 then
      parts[#parts + 1] = text
    end
  end
  add(done.restored or 0, files(done.restored or 0) .. " restored")
  add(done.trashed or 0, files(done.trashed or 0) .. " moved to "
    .. changes.path(done.trash or "the trash", env.home))
  add(refs, ("%d ref%s moved"):format(refs, refs == 1 and "" or "s"))
  add(#(done.skipped or {}), files(#(done.skipped or {})) .. " skipped")
  return #parts > 0 and table.concat(parts, ", ") or "nothing was left to do"
end

local function tell(env, done)
  local word = done.redo and "redone" or "undone"
  say_rows(env, { { { word .. ": " .. result_words(env, done) } } })
  if done.stopped then
    return nil, "undo stopped: " .. done.stopped, "internal",
      { hint = "run efr undo again; it goes on where it stopped" }
  end
  return 0
end

local function undo(env, link, args)
  local found, message, code, data = link:call("turn.undo", request(env, args, "plan"))
  if not found then
    return nil, message, code, data
  end
  say_rows(env, preview(env, found), args.dry_run)
  if args.dry_run then
    return 0
  end
  if not args.yes then
    local key = ask(env, args.redo and "redo" or "undo")
    if not key then
      return nil, "there is no terminal to ask on", "EFR_USAGE", { hint = "give --yes" }
    elseif key ~= "y" then
      env:say("nothing was changed")
      return 1
    end
  end
  -- The turn of the preview, not one that ended meanwhile.
  local wanted = request(env, args, "apply")
  wanted.turn_id = not found.continues and found.turn_id or nil
  local done
  done, message, code, data = link:call("turn.undo", wanted)
  if not done then
    return nil, message, code, data
  end
  return tell(env, done)
end

function M.run(args, env)
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  local link, message, code, data = conn.open(env, { tty = tty })
  if not link then
    return nil, message, code, data
  end
  return (args.list and list_turns or undo)(env, link, args)
end

return M
