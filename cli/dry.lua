-- Owns: the end of `efr run --dry`: what the command would change, the question, the answer.
-- Must not know: how the command ran. Loop thread of `efr`; waits.
--
-- All of it goes to standard error: the command's output is alone on standard output.

local async = require "efr.util.async"
local changes = require "efr.cli.view.changes"
local groups = require "efr.cli.view.groups"
local rows = require "efr.cli.view.rows"
local screen = require "efr.cli.screen"

local M = {}

local MAX_LINES <const> = 200 -- of a diff before a question
local MAX_DROPPED <const> = 10

local function say(env, row)
  env:err(screen.style(env, 2):row(row) .. "\n")
end

local function show_diff(env, link, run_id)
  local found, message = link:call("conversation.diff", { turn_id = run_id })
  if not found then
    return env:warn("the diff cannot be shown: " .. message)
  end
  local all = changes.whole_rows(found.diff or "")
  for i = 1, math.min(#all, MAX_LINES) do
    say(env, all[i])
  end
  if #all > MAX_LINES then
    say(env, { { ("… %d more lines"):format(#all - MAX_LINES), "muted" } })
  end
end

local function show_dropped(env, dropped)
  for i = 1, math.min(#dropped, MAX_DROPPED) do
    say(env, { { "not kept " }, { changes.path(dropped[i], env.home), "code" },
      { " (no snapshot holds it)", "muted" } })
  end
  if #dropped > MAX_DROPPED then
    say(env, { { ("… %d more paths"):format(#dropped - MAX_DROPPED), "muted" } })
  end
end

-- Whether to keep the changes. Whoever went away keeps nothing.
local function ask(env, args)
  if args.yes or args.no then
    return args.yes == true
  end
  local input = require("efr.cli.keys").open(env, false)
  if not input then
    return false
  end
  env:err(screen.style(env, 2):row({ { "keep these changes? ", "warning" }, { "y", "bold" },
    { " yes · ", "muted" }, { "n", "bold" }, { " no " } }))
  local key = async.await(function(resume)
    input:listen(resume)
  end)
  input:close()
  env:err(key == "y" and "y\n" or "n\n")
  return key == "y"
end

local function files(count)
  return ("%d file%s"):format(count, count == 1 and "" or "s")
end

local function tell(env, done)
  local parts = { files(done.written) .. " written" }
  if done.trashed > 0 then
    parts[#parts + 1] = files(done.trashed) .. " moved to " .. changes.path(done.trash, env.home)
  end
  say(env, { { "kept: " .. table.concat(parts, ", ") .. "; " },
    { "efr undo takes it back", "muted" } })
  for _, path in ipairs(done.skipped) do
    say(env, { { "skip ", "warning" }, { changes.path(path, env.home), "code" },
      { " (changed since the command began)", "muted" } })
  end
  if done.stopped then
    env:warn("it stopped: " .. rows.safe(done.stopped) .. "; efr undo goes on with it")
  end
end

--- Why a dry run cannot be answered here, or nil.
--- @param env table
--- @param args table
--- @return string? reason
function M.refusal(env, args)
  if (args.yes or args.no) and not args.dry then
    return "--yes and --no belong to --dry"
  elseif args.yes and args.no then
    return "--yes and --no exclude each other"
  elseif args.dry and not (args.yes or args.no) and not env:is_tty(0) then
    return "there is no terminal to ask on: give --yes or --no"
  end
  return nil
end

--- Shows what the command would change, and asks.
--- @param env table
--- @param link table
--- @param run_id string
--- @param result table  of run.end
--- @param args table  yes, no; no: also when nobody can answer any more
function M.finish(env, link, run_id, result, args)
  if result.waits then
    show_diff(env, link, run_id)
  else
    say(env, { { "the command would change nothing that can be kept" } })
  end
  show_dropped(env, result.dropped or {})
  local totals = changes.totals_row(result.changes, groups.of_config((env:config())))
  if totals then
    say(env, totals)
  end
  if not result.waits then
    return
  end
  local keep = ask(env, args)
  local done, message = link:call("run.keep", { run_id = run_id, keep = keep })
  if not done then
    env:warn((keep and "the changes are not made: %s; efr undo --redo makes them later"
      or "the changes are not dropped: %s"):format(message))
  elseif keep then
    tell(env, done)
  else
    say(env, { { "nothing was changed" } })
  end
end

return M
