-- efr history: the conversations, or one of them.

local conn = require "efr.cli.conn"
local past = require "efr.cli.past"
local rows = require "efr.cli.view.rows"
local screen = require "efr.cli.screen"
local time = require "efr.util.time"
local when = require "efr.cli.when"

local M = { summary = "list conversations or show one" }

local PREFIX_MIN <const> = 4
local PAGE <const> = 200
local WIDE <const> = 1 << 30

function M.add(parser)
  parser:argument("conversation", "an id, or at least its first 4 characters"):args("?")
  parser:option("--limit", "how many to show"):argname("N"):convert(math.tointeger)
  parser:option("--cursor", "where to go on"):argname("C")
  parser:flag("-v --verbose", "with every record of what left the sandbox")
end

local STATUS <const> = { awaiting_approval = "awaiting approval" }

local function show_list(env, link, args)
  local result, message, code, data = link:call("conversations.list", {
    limit = args.limit, cursor = args.cursor,
  })
  if not result then
    return nil, message, code, data
  end
  local list = result.conversations or {}
  if #list == 0 then
    env:out("no conversations yet\n")
    return 0
  end
  local style, now = screen.style(env, 1), env.ports.sys.now_us()
  for _, item in ipairs(list) do
    local updated = when.parse(item.updated_at)
    local age = updated and time.span(now - updated) or "?"
    local title = item.title and item.title ~= "" and item.title:gsub("\n", " ") or "(untitled)"
    local status = STATUS[item.status] or item.status or "?"
    env:out(style:row({
      { rows.safe(item.id), "muted" },
      { ("  %-17s  %7s  "):format(rows.safe(status), age) },
      { rows.safe(title) },
    }) .. "\n")
  end
  if result.next_cursor then
    env:say("more: efr history --cursor " .. result.next_cursor)
  end
  return 0
end

-- The id that a person meant.
local function find(link, word)
  if #word == 36 then
    return word
  end
  if #word < PREFIX_MIN then
    return nil, ("%q is too short; give at least %d characters of the id"):format(word, PREFIX_MIN),
      "EFR_USAGE"
  end
  local found, cursor = {}, nil
  repeat
    local page, message, code, data =
      link:call("conversations.list", { limit = PAGE, cursor = cursor })
    if not page then
      return nil, message, code, data
    end
    for _, item in ipairs(page.conversations or {}) do
      if item.id:sub(1, #word) == word then
        found[#found + 1] = item.id
      end
    end
    cursor = page.next_cursor
  until not cursor or #found > 1
  if #found == 1 then
    return found[1]
  end
  if #found == 0 then
    return nil, "no conversation starts with " .. word, "not_found", { hint = "see: efr history" }
  end
  return nil, ("%s names more than one conversation"):format(word), "EFR_USAGE"
end

local function context(env, args, style)
  local config = env:config()
  local cols = env:is_tty(1) and env.ports.tty.size(1) or WIDE
  return {
    cols = cols,
    lines = WIDE,
    diff_lines = config and config:get("render.diff_lines") or 20,
    home = env.home,
    verbose = args.verbose,
    hyperlinks = style.hyperlinks,
    ticks = not style.colour,
  }
end

local function show_one(env, link, args)
  local id, message, code, data = find(link, args.conversation)
  if not id then
    return nil, message, code, data
  end
  local page
  page, message, code, data = link:call("conversation.history", {
    conversation_id = id, limit = args.limit, cursor = args.cursor,
  })
  if not page then
    return nil, message, code, data
  end
  local style = screen.style(env, 1)
  local list, why = past.rows(page.events or {}, context(env, args, style))
  if not list then
    return nil, "efrd sent a malformed event: " .. why, "internal"
  end
  local head = { { { "conversation " .. id, "muted" } } }
  if page.next_cursor then
    local words = ("earlier events: efr history %s --cursor %s"):format(id, page.next_cursor)
    head[2] = { { rows.safe(words), "muted" } }
  end
  local lines = {}
  for _, row in ipairs(rows.extend(rows.extend(head, { {} }), list)) do
    lines[#lines + 1] = style:row(row) .. "\n"
  end
  env:out(table.concat(lines))
  return 0
end

function M.run(args, env)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  return (args.conversation and show_one or show_list)(env, link, args)
end

return M
