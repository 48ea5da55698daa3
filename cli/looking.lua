-- Looking at a command that runs in the hidden shell: its line, its screen, the keys.
-- Owns: when it is drawn, what a key does, when it is over. Must not know: how a screen is drawn
-- while attached (attach.lua), what becomes of a typed answer (replying.lua). Loop thread of `efr`;
-- run waits in a task.

local async = require "efr.util.async"
local attach = require "efr.cli.attach"
local failure = require "efr.cli.failure"
local keys = require "efr.cli.keys"
local live = require "efr.cli.view.live"
local replying = require "efr.cli.replying"
local picture = require "efr.cli.view.picture"
local rows = require "efr.cli.view.rows"
local screen = require "efr.cli.screen"
local when = require "efr.cli.when"

local M = {}

local TICK_MS <const> = 1000
local ROWS_MAX <const> = 16
local ESC <const> = "\27"
-- What efrd types into the hidden shell.
local ENTER <const> = { ["\r"] = true, ["\n"] = true }
local STARTS <const> = [[\builtin eval "$_efrh_text"]]
-- Events after which the state is asked for anew.
local NEWS <const> = {
  tool_call_completed = true, shell_command_left = true, shell_command_ended = true,
  shell_exited = true, shell_command_input_changed = true, tool_call_input_changed = true,
}

local Look = {}
Look.__index = Look

local function header(self)
  local status = self.status
  local since = when.parse(status.since)
  local seconds = since and math.max(0, (self.env.ports.sys.now_us() - since) // 1000000) or 0
  local where = status.contained and ", in the sandbox" or ""
  return {
    { ("running for %d s%s: "):format(seconds, where), "muted" },
    { rows.safe((status.line or ""):gsub("\n.*", " ...")), "bold" },
  }
end

local function key_rows(self, cols)
  if self.reply:is_guarding() then
    return { { { "Ctrl+C", "bold" }, { " leaves", "muted" } } }
  elseif self.reply.item then
    return self.reply:rows(cols)
  end
  local a = self.status.contained and " watch · " or " attach · "
  local row = {
    { "a", "bold" }, { a, "muted" }, { "i", "bold" }, { " interrupt · ", "muted" },
    { "q", "bold" }, { " leave", "muted" },
  }
  if replying.can(self.status) then
    table.insert(row, 1, { "Enter", "bold" })
    table.insert(row, 2, { " answer · ", "muted" })
  end
  return { row }
end

-- What the command shows: not what stood on the screen before the line that started it.
local function own_lines(shown)
  local lines, first = shown:lines(), 1
  for i = 1, shown.alternate_screen and 0 or #lines do
    if lines[i]:find(STARTS, 1, true) then
      first = i + 1
    end
  end
  return table.move(lines, first, #lines, 1, {})
end

local function shown_rows(self, room)
  local out = {}
  for _, line in ipairs(own_lines(self.picture)) do
    out[#out + 1] = { { line } }
  end
  return table.move(out, math.max(#out - room + 1, 1), #out, 1, {})
end

function Look:_draw()
  if self.attached or self.done.done then
    return
  end
  local tty = self.env.ports.tty
  local cols, lines = tty.size(1)
  local size = { cols = cols or 80, lines = cols and lines or 24 }
  local list = { header(self) }
  rows.extend(list, shown_rows(self, math.min(ROWS_MAX, size.lines - 4)))
  list[#list + 1] = { { self.note or "", "warning" } }
  rows.extend(list, key_rows(self, size.cols))
  local bytes = self.live:frame({}, list, size)
  tty.farewell(1, self.live:farewell(size.cols))
  if bytes ~= "" and not tty.write(1, bytes) then
    self.done:set("broken")
  end
end

-- Takes the rows away again.
function Look:_clear()
  local tty = self.env.ports.tty
  tty.write(1, self.live:finish(tty.size(1) or 80))
  tty.farewell(1, "")
end

-- Asks whether the command still runs.
function Look:_check()
  async.spawn(function()
    local status, message, code = self.link:call("shell.status", {
      conversation_id = self.status.conversation_id,
    })
    if self.done.done then
      return
    elseif not status then
      self.done:set("failed", message, code)
    elseif status.state ~= "running" or status.call_id ~= self.status.call_id then
      self.done:set("over")
      if self.attached then
        self.attached:set("over")
      end
    else
      self.status = status
      self.reply:update(status)
      self:_draw()
    end
  end)
end

function Look:_interrupt()
  if self.interrupting then
    return
  end
  self.interrupting = true
  async.spawn(function()
    local ok, message = self.link:call("shell.interrupt", {
      conversation_id = self.status.conversation_id,
    })
    self.interrupting = false
    self.note = not ok and rows.safe(message)
      or ok.state == "running" and "it was interrupted, and still runs" or nil
    self:_check()
  end)
end

function Look:_attach()
  local status = self.status
  self.keys:stop()
  self:_clear()
  self.attached = async.future()
  local words = status.contained
    and " in the sandbox: your keys are not sent · Ctrl+C stops it · Ctrl+\\ leaves · "
    or " Ctrl+\\ leaves · "
  local how, message = attach.run(self.env, self.link, {
    pty_id = status.pty_id, words = words .. rows.safe((status.line or ""):gsub("\n.*", " ...")),
    takes_keys = not status.contained, done = self.attached,
    on_interrupt = function()
      self:_interrupt()
    end,
  })
  self.attached = nil
  self.note = message and rows.safe(message)
  if self.quick and how == "left" then
    return self.done:set("left")
  end
  self:_check()
  if not self.done.done then
    self:_listen()
  end
end

function Look:_listen()
  self.keys:listen(function(key)
    if key == "q" or key == ESC then
      self.done:set("left")
    elseif key == "i" then
      self:_interrupt()
    elseif key == "a" then
      async.spawn(self._attach, self)
    elseif ENTER[key] and replying.can(self.status) then
      self.reply:open(self.status)
      self:_draw()
    end
  end)
end

-- Events of the conversation say when to ask. One that came before the subscription is not missed:
-- the state is asked for once more behind it.
local function subscribe(self)
  self.link:stream("conversation.subscribe", {
    conversation_id = self.status.conversation_id, answers_input = true,
  }, function(item)
    if item.kind == "snapshot" or item.kind == "event" and NEWS[item.event.kind] then
      self:_check()
    end
  end, function(_, message, code)
    if not self.done.done and code ~= "overflow" then
      self.done:set("failed", message, code)
    end
  end)
end

local function watch_screen(self)
  self.link:stream("pty.attach", { pty_id = self.status.pty_id, screens = true }, function(item)
    if self.picture:item(item) then
      self:_draw()
    end
  end, function() end)
end

local function open_signals(self)
  local handles = {}
  for name, fn in pairs({
    sigint = function()
      self.done:set("interrupted")
    end,
    sigwinch = function()
      self:_draw()
    end,
  }) do
    local handle = assert(self.env.ports.uv.new_signal())
    handle:start(name, fn)
    handles[#handles + 1] = handle
  end
  local timer = assert(self.env.ports.uv.new_timer())
  timer:start(TICK_MS, TICK_MS, function()
    self:_draw()
  end)
  handles[#handles + 1] = timer
  return handles
end

-- What stands below when the rows are gone.
local function last_words(self, how, message, code)
  local line = (self.status.line or ""):gsub("\n.*", " ...")
  if how == "failed" then
    return nil, message, code
  elseif how == "broken" then
    return nil, nil, "EFR_SILENT"
  elseif how == "over" then
    self.env:say("ended in the hidden shell: " .. line)
  elseif how == "interrupted" then
    return failure.INTERRUPTED
  end
  return failure.OK
end

-- Without keys: the state and the screen once.
local function print_once(env, link, status)
  local seen, shown = async.future(), picture.new()
  link:stream("pty.attach", { pty_id = status.pty_id, screens = true }, function(item)
    if shown:item(item) and not seen.done then
      seen:set(true)
    end
  end, function()
    if not seen.done then
      seen:set(false)
    end
  end)
  seen:get()
  local self = { env = env, status = status }
  env:say(rows.plain(header(self)))
  for _, line in ipairs(own_lines(shown)) do
    env:out(line .. "\n")
  end
  return failure.OK
end

--- Looks at a running command until the user leaves or it has ended.
--- @param env table
--- @param link efr.cli.conn
--- @param status table  of shell.status
--- @param args {attach: boolean?}
--- @return integer? exit, string? message, string? code
function M.run(env, link, status, args)
  local input = env:is_tty(1) and keys.open(env, false)
  if not input then
    return print_once(env, link, status)
  end
  local self = setmetatable({
    env = env, link = link, status = status, keys = input, picture = picture.new(),
    live = live.new(screen.style(env, 1)), done = async.future(), quick = args.attach,
  }, Look)
  self.reply = replying.new {
    link = link, keys = input, listen = function()
      self:_listen()
    end, note = function(text)
      self.note = text
      self:_draw()
    end,
  }
  local handles = open_signals(self)
  subscribe(self)
  watch_screen(self)
  if args.attach then
    async.spawn(self._attach, self)
  else
    self:_listen()
    self:_draw()
  end
  local how, message, code = self.done:get()
  if self.attached and not self.attached.done then
    self.attached:set("over")
  end
  self:_clear()
  input:stop(self.reply:is_guarding())
  input:close()
  for _, handle in ipairs(handles) do
    handle:close()
  end
  return last_words(self, how, message, code)
end

return M
