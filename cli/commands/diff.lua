-- efr diff: what a turn or an efr run changed, as a diff or as a list.

local changes = require "efr.cli.view.changes"
local conn = require "efr.cli.conn"
local groups = require "efr.cli.view.groups"
local rows = require "efr.cli.view.rows"
local screen = require "efr.cli.screen"

local M = { summary = "what the last turn changed in its project and $SCRATCH" }

function M.add(parser)
  parser:option("--turn", "another turn; see: efr undo --list"):argname("ID")
  parser:option("--conversation", "the newest turn of another conversation"):argname("ID")
  parser:flag("--stat", "the files only")
end

-- On a terminal in colours; into a pipe as it is, for git apply.
local function print_diff(env, text)
  if not env:is_tty(1) then
    env:out(text)
    return
  end
  local style = screen.style(env, 1)
  local lines = {}
  for i, row in ipairs(changes.whole_rows(text)) do
    lines[i] = style:row(row) .. "\n"
  end
  env:out(table.concat(lines))
end

local KIND <const> =
  { added = "new", modified = "changed", deleted = "deleted", renamed = "renamed" }

local function print_stat(env, found, compiled)
  local style = screen.style(env, 1)
  for _, file in ipairs(groups.sort(found.files, compiled)) do
    local row = { { KIND[file.kind] .. " ", "muted" } }
    local name = changes.path(file.path, env.home)
    if file.from then
      name = changes.path(file.from, env.home) .. " → " .. name
    end
    row[2] = { name }
    if file.binary then
      row[3] = { " (binary)", "muted" }
    end
    env:out(style:row(rows.extend(row, changes.counts(file.added, file.removed))) .. "\n")
  end
  if (found.more or 0) > 0 then
    local word = found.more == 1 and "file" or "files"
    env:out(style:row({ { ("… %d more %s"):format(found.more, word), "muted" } }) .. "\n")
  end
end

function M.run(args, env)
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  local link, message, code, data = conn.open(env, { tty = tty })
  if not link then
    return nil, message, code, data
  end
  local cwd = env.ports.uv.cwd()
  local found
  found, message, code, data = link:call("conversation.diff", {
    turn_id = args.turn, conversation_id = args.conversation, stat = args.stat or nil,
    cwd = cwd and env.ports.fs.realpath(cwd),
  })
  if not found then
    return nil, message, code, data
  end
  if not found.changes then
    env:say(("turn %s changed no file"):format(found.turn_id))
    return 0
  end
  local compiled = groups.of_config((env:config()))
  if args.stat then
    print_stat(env, found.changes, compiled)
  else
    print_diff(env, found.diff or "")
  end
  local totals = changes.totals_row(found.changes, compiled)
  if totals and (args.stat or env:is_tty(1)) then
    env:out(screen.style(env, 1):row(totals) .. "\n")
  end
  return 0
end

return M
