-- efr explain: why a call ran, asked or was refused, and what efr would make of a line.

local conn = require "efr.cli.conn"
local deciding = require "efr.cli.deciding"
local explain = require "efr.perm.explain"
local failure = require "efr.cli.failure"
local modes = require "efr.perm.modes"
local own_rules = require "efr.cli.own_rules"
local command_words = require "efr.cli.words"

local M = { summary = "why a call ran, asked or was refused" }

local INPUT_MAX <const> = 64 * 1024 * 1024
local READ_BYTES <const> = 65536
local UUID <const> = ("%x"):rep(8) .. "%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-" .. ("%x"):rep(12)

function M.add(parser)
  parser:argument("line", "a command line, or the id of a call; none: this terminal's newest call")
    :args("*")
  parser:option("--mode", "the mode to decide in; default: permissions.mode"):argname("MODE")
  parser:option("--cwd", "where the line would start"):argname("DIR")
  parser:flag("--json", "as one JSON object")
  parser:flag("--batch", "lines as JSON strings on stdin, one a row; one object a row comes out")
end

--- Words of the line are no options: the first word that is none ends them.
function M.words(args)
  return command_words.end_options(args, { ["--mode"] = true, ["--cwd"] = true })
end

local function to_json(env, data)
  local json, text = env.ports.json, env.ports.text
  explain.each_list(data, json.array)
  local encoded = json.encode(data, { sort = true })
  if encoded then
    return encoded
  end
  -- Bytes that are no UTF-8 came from the line or from a path.
  local function clean(value)
    if type(value) == "string" then
      return text.clean(value)
    elseif type(value) ~= "table" then
      return value
    end
    for key, inner in pairs(value) do
      value[key] = clean(inner)
    end
    return value
  end
  return assert(json.encode(clean(data), { sort = true }))
end

local function show(env, args, data)
  if args.json then
    env:out(to_json(env, data) .. "\n")
    return failure.OK
  end
  for _, row in ipairs(explain.text(data)) do
    env:say(row)
  end
  return failure.OK
end

-- Many lines ------------------------------------------------------------------------------------

local function read_input(env)
  local parts, total = {}, 0
  while true do
    local bytes, err = env.ports.uv.fs_read(0, READ_BYTES)
    if not bytes then
      return nil, "read stdin: " .. tostring(err), "EIO"
    elseif bytes == "" then
      return table.concat(parts)
    end
    parts[#parts + 1], total = bytes, total + #bytes
    if total > INPUT_MAX then
      return nil, "more than 64 MiB on stdin", "EFR_USAGE"
    end
  end
end

local function batch(env, on)
  local input, message, code = read_input(env)
  if not input then
    return nil, message, code
  end
  local bad = false
  for row in input:gmatch("[^\n]+") do
    local line = env.ports.json.decode(row)
    local data
    if type(line) == "string" then
      data = to_json(env, deciding.of_line(env, on, line))
    else
      bad = true
      data = '{"error":"the row is no JSON string"}'
    end
    env:out(data .. "\n")
  end
  return bad and failure.USAGE or failure.OK
end

-- A past call -----------------------------------------------------------------------------------

local function past(env, args, call_id)
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  local link, message, code, data = conn.open(env, { tty = tty })
  if not link then
    return nil, message, code, data
  end
  local result
  result, message, code, data = link:call("decision.explain", { call_id = call_id })
  link:close()
  if not result then
    return nil, message, code, data
  end
  return show(env, args, result)
end

function M.run(args, env)
  local words = args.line
  local call_id = #words == 1 and words[1]:match("^" .. UUID .. "$")
  if not args.batch and (#words == 0 or call_id) then
    return past(env, args, call_id or nil)
  end
  local on, message, code = deciding.setting(env, args)
  if not on then
    return nil, message, code
  end
  local known = false
  for _, name in ipairs(modes.NAMES) do
    known = known or name == on.mode
  end
  if not known then
    return nil, ("there is no mode %s; the modes are %s"):format(on.mode,
      table.concat(modes.NAMES, ", ")), "EFR_USAGE"
  end
  on.rules, message, code = own_rules.open(env)
  if not on.rules then
    return nil, message, code
  end
  local result
  if args.batch then
    result, message, code = batch(env, on)
  else
    result, message, code = show(env, args, deciding.of_line(env, on, table.concat(words, " ")))
  end
  on.rules:close()
  return result, message, code
end

return M
