-- Owns: the tool shell: its input, what a line declares, and the text of each outcome.
-- Must not know: how a line is run (ctx.shell does it), or who decides whether it runs.
-- Runs in efrd, on the loop thread; run waits.

local list = require "efr.util.list"

local M = {}

local DEFAULT_SECONDS <const> = 30
local MAX_SECONDS <const> = 600
local MAX_LINE_BYTES <const> = 64 * 1024
local PARAMETERS <const> = {
  command = true, timeout_seconds = true, nested_shell = true, needs = true,
}

-- What programs print when the sandbox stopped them.
local SANDBOX_PHRASES <const> = {
  "read-only file system", "permission denied", "operation not permitted", "network is unreachable",
  "could not resolve", "temporary failure in name resolution", "name or service not known",
}
local SANDBOX_NOTE <const> = "[it ran in the sandbox: no network but loopback, and writes only in "
  .. "the project, $SCRATCH and private temporary directories; with needs a call can ask for more]"
local GRANTED_NOTE <const> =
  "[it ran in the sandbox, with what was granted for this call and nothing more]"

local function strings(most, words)
  return { type = "array", items = { type = "string" }, maxItems = most, description = words }
end

local NEEDS <const> = {
  type = "object",
  description = "Only in auto, and only after the sandbox stopped a command: what this call needs "
    .. "beyond it. The user or a reviewer decides. Ask for no more than the call needs.",
  properties = {
    write = strings(8, "Files or directories to write."),
    hosts = strings(8, "host, host:port or URLs to reach."),
    sockets = strings(2, "Unix sockets to connect to."),
    bus = { type = "string", enum = { "system", "session" }, description = "A D-Bus to talk to." },
    device = { type = "string", description = "A device below /dev." },
    unmask = strings(4, "Files that the sandbox hides, to read."),
    outside = { type = "boolean", description = "The whole command must run outside of the "
      .. "sandbox, with the user's rights. It must then be one command alone." },
    userns = { type = "boolean", description = "New user namespaces, as browsers make." },
    reason = { type = "string", maxLength = 300, description = "Why, in one sentence." },
  },
  additionalProperties = false,
}

M.name = "shell"
M.description = [[Runs a command line in the hidden zsh of this conversation. Directory, variables
and functions stay for the next call; in auto, changes of them that are risky are dropped. Output
comes as text, stdout and stderr together. The result ends with the exit code and the directory.
Do not start programs that wait for keys, editors or pagers.]]
M.schema = {
  type = "object",
  properties = {
    command = { type = "string", description = "One or more lines of zsh." },
    timeout_seconds = {
      type = "integer", minimum = 1, maximum = MAX_SECONDS,
      description = "How long to wait, 30 by default. A command that takes longer goes on, and "
        .. "the result shows its output so far.",
    },
    nested_shell = {
      type = "boolean",
      description = "true when the command starts a shell that stays, such as ssh or bash, and "
        .. "for every command that is to run in it. Default: false. Refused in auto.",
    },
    needs = NEEDS,
  },
  required = { "command" },
  additionalProperties = false,
}

local function unknown(input)
  for _, name in ipairs(list.keys(input)) do
    if not PARAMETERS[name] then
      return ("shell has no parameter %s. It takes command, timeout_seconds, nested_shell and "
        .. "needs."):format(name)
    end
  end
  return nil
end

local function timeout_of(input)
  local value = input.timeout_seconds
  if value == nil then return DEFAULT_SECONDS end
  local seconds = math.type(value) and math.tointeger(value)
  if not seconds or seconds < 1 or seconds > MAX_SECONDS then
    return nil, ("timeout_seconds must be a whole number from 1 to %d."):format(MAX_SECONDS)
  end
  return seconds
end

local function check(input)
  local err = unknown(input)
  if err then return nil, err end
  local command = input.command
  if type(command) ~= "string" or not command:find("%S") then
    return nil, "command must be a string that is not empty."
  end
  if command:find("\0", 1, true) then return nil, "command holds a NUL byte." end
  if #command > MAX_LINE_BYTES then return nil, "command has more than 64 KiB." end
  if input.nested_shell ~= nil and type(input.nested_shell) ~= "boolean" then
    return nil, "nested_shell must be true or false."
  end
  if input.needs ~= nil and type(input.needs) ~= "table" then
    return nil, "needs must be an object."
  end
  local _, why = timeout_of(input)
  if why then return nil, why end
  return true
end

local PATH_LISTS <const> = { "write", "sockets", "unmask" }

local function absolute(path, ctx)
  if type(path) ~= "string" or path == "" or path:sub(1, 1) == "/" then return path end
  if path:sub(1, 2) == "~/" then return ctx.home .. path:sub(2) end
  if path:sub(1, 9) == "$SCRATCH/" and ctx.scratch then return ctx.scratch .. path:sub(9) end
  return ctx.cwd .. "/" .. path
end

-- What the model asks for with absolute paths; whether it is well formed is the caller's to check.
local function needs_of(input, ctx)
  local given, out = input.needs, {}
  if type(given) ~= "table" or ctx.mode ~= "auto" then return nil end
  for name, value in pairs(given) do
    if value ~= ctx.json.null and value ~= false then out[name] = value end
  end
  for _, name in ipairs(PATH_LISTS) do
    if type(out[name]) == "table" then
      out[name] = list.map(out[name], function(path) return absolute(path, ctx) end)
      if #out[name] == 0 then out[name] = nil end
    end
  end
  if type(out.hosts) == "table" and #out.hosts == 0 then out.hosts = nil end
  return next(out) and out or nil
end

---What the line itself reads, writes and may do is read out of it by the caller.
---@param input table
---@param ctx efr.ToolContext
---@return table[]? requirements
---@return string? err
function M.declare(input, ctx)
  local ok, err = check(input)
  if not ok then return nil, err end
  local out = { { kind = "line", text = input.command, cwd = ctx.cwd } }
  if input.nested_shell then out[2] = { kind = "nested_shell" } end
  local needs = needs_of(input, ctx)
  if needs then out[#out + 1] = { kind = "needs", needs = needs } end
  return out
end

-- A note in brackets on a line of its own behind the output.
local function with_note(output, note)
  local feed = (output == "" or output:sub(-1) == "\n") and "" or "\n"
  return output .. feed .. note
end

-- Whether a failure can come from the sandbox. A failing test alone must not bring the note.
local function smells(output)
  output = output:lower()
  for _, phrase in ipairs(SANDBOX_PHRASES) do
    if output:find(phrase, 1, true) then return true end
  end
  return false
end

-- In a shell inside of the hidden one: of another user or another machine, maybe.
local function finished_inside(result)
  local where = result.nested.cwd and ", cwd " .. result.nested.cwd or ""
  return with_note(result.output, ("[exit code %d%s, in the shell that %s started]"):format(
    result.exit_code, where, result.nested.line:match("^[^\n]*"))), result.exit_code ~= 0
end

local function finished(result, call)
  if result.nested then return finished_inside(result) end
  local note = ("[exit code %d, cwd %s]"):format(result.exit_code, result.cwd or call.ctx.cwd)
  if result.exit_code ~= 0 and call.ctx.launch == "contained" and smells(result.output) then
    note = note .. "\n" .. (call.ctx.granted and GRANTED_NOTE or SANDBOX_NOTE)
  end
  return with_note(result.output, note), result.exit_code ~= 0
end

-- How a command stands that goes on.
local WAITS <const> = {
  hidden = ", waits for hidden input such as a password",
  visible = ", waits for an answer",
  input = ", waits for input",
  keys = ", waits for keys",
}

local FULL_SCREEN <const> = "[the command is a full-screen program that still runs after %d s; no "
  .. "keys can be sent to it from here, and until it ends the hidden shell takes no other command. "
  .. "Its screen shows:]"

local function timed_out(result, call)
  if result.full_screen then
    return FULL_SCREEN:format(call.seconds) .. "\n" .. result.output, false
  end
  local note = ("[the command still runs after %d s%s and goes on in the hidden shell, which takes "
    .. "no other command until it ends; %s]")
  local waits = WAITS[result.waits] or ""
  if result.output == "" then
    return note:format(call.seconds, waits, "it printed nothing so far"), false
  end
  return note:format(call.seconds, waits, "its output ends with:") .. "\n" .. result.output, false
end

local function setup_failed(result, call)
  local reason = result.setup_error or "no reason was given"
  local what = result.no_shell and "the hidden shell could not start"
    or call.ctx.launch == "contained" and "the sandbox could not start"
    or "the command could not start"
  return with_note(result.output or "", ("[%s: %s; nothing of it ran]"):format(what, reason)), true
end

-- Part of the command has run: nothing here may invite to run it again unseen.
local function cut_short(result, call)
  local what = call.ctx.launch == "outside" and "efr's launcher" or "the sandbox"
  return with_note(result.output or "", ("[%s ended while the command ran: %s; "
    .. "what the command did until then stays]"):format(what, result.cut_short)), true
end

local function fixed(note)
  return function(result)
    return with_note(result.output or "", note), true
  end
end

local function wants_secret(result, call)
  local why = call.ctx.launch == "contained"
    and "the command asked for a password or another secret, and efr types none into the sandbox"
    or "the command waits for hidden input, such as a password, and nobody can answer"
  local ending = result.left_running and "it was interrupted and still runs" or "it was stopped"
  if call.ctx.launch == "contained" then
    ending = ending .. ". One that cannot do without can ask for needs.outside"
  end
  return with_note(result.output or "", ("[%s; %s]"):format(why, ending)), true
end

local FRESH <const> = "[the hidden shell of before had ended: this ran in a new one, without its "
  .. "variables, functions and aliases]"

local OUTCOMES <const> = {
  finished = finished,
  timeout = timed_out,
  setup_failed = setup_failed,
  cut_short = cut_short,
  -- The words about an interrupt come from the turn, which knows who asked for it.
  interrupted = function(result) return result.output or "", true end,
  wants_secret = wants_secret,
  -- zsh could not parse the text; its own message is the output.
  not_started = fixed("[zsh could not read the command, and nothing of it ran]"),
  busy = function(result)
    local why = result.setup_error or "an earlier command still runs in it"
    return ("[the hidden shell is busy: %s. The command did not run, and no call can change that: "
      .. "tell the user. ,shell shows and stops what runs there, ,new starts with a new shell.]")
      :format(why), true
  end,
  -- The second check, between the decision and the start.
  changed = function(result)
    return ("[efr did not run it: %s; nothing of it ran. Call again if it is still needed: it is "
      .. "decided anew.]"):format(result.setup_error), true
  end,
  nested = function(result)
    return with_note(result.output, "[a shell is open in the hidden shell now. Calls with "
      .. "nested_shell run in it, others wait until it has ended; exit ends it.]"), false
  end,
  nested_ended = function(result)
    return with_note(result.output, "[the shell inside the hidden shell has ended; calls without "
      .. "nested_shell run again]"), false
  end,
  too_long = fixed("[a command for a shell inside the hidden one is typed and has at most about "
    .. "4000 bytes; this one is longer, and nothing of it ran]"),
  exited = fixed("[the hidden shell ended while the command ran; the next call starts a new one]"),
}

---@param input table
---@param ctx efr.ToolContext
---@return efr.ToolResult
function M.run(input, ctx)
  local seconds = assert(timeout_of(input))
  local result = ctx.shell { line = input.command, timeout_ms = seconds * 1000 }
  local describe = OUTCOMES[result.outcome] or error("no outcome " .. tostring(result.outcome))
  local output, is_error = describe(result, { ctx = ctx, seconds = seconds })
  if result.fresh then output = with_note(output, FRESH) end
  for _, note in ipairs(result.notes or {}) do output = with_note(output, note) end
  return {
    output = output, is_error = is_error, exit_code = result.exit_code,
    truncated = result.truncated or nil,
  }
end

return M
