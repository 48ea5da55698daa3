-- One line for a terminal that does not follow its conversation: a turn ended, an approval waits,
-- a command left in the hidden shell waits or has ended, a restart dropped a prompt, the settings
-- have an error. The plugin shows the file at the next prompt.
-- Also keeps who follows what. Knows nothing of the wire. Main thread of efrd.
local M = {}

local LINE_MAX <const> = 200 -- bytes
local DIR_MODE <const> = 448 -- 0700
local FILE_MODE <const> = 384 -- 0600

local Followers = {}
Followers.__index = Followers

--- The subscriptions that are open, by conversation and terminal.
function M.followers()
  return setmetatable({ counts = {} }, Followers)
end

local function key_of(conversation_id, tty)
  return conversation_id .. " " .. (tty or "")
end

--- @return fun() remove
function Followers:add(conversation_id, tty)
  local key, counted = key_of(conversation_id, tty), true
  self.counts[key] = (self.counts[key] or 0) + 1
  return function()
    if counted then
      counted = false
      local left = self.counts[key] - 1
      self.counts[key] = left > 0 and left or nil
    end
  end
end

--- Does a client in that terminal see the events of the conversation?
function Followers:has(conversation_id, tty)
  return self.counts[key_of(conversation_id, tty)] ~= nil
end

--- The file name of a terminal: `/dev/pts/3` is `pts-3`. nil for a name that cannot be one.
function M.file_name(tty)
  local name = tty:gsub("^/dev/", ""):gsub("/", "-")
  if name:find("^[%w_-][%w._-]*$") and #name <= 64 then
    return name
  end
  return nil
end

-- The longest start of `text` with at most `max` bytes that ends between characters.
local function cut(text, max)
  local at = max + 1
  while at > 1 and (text:byte(at) or 0) & 0xC0 == 0x80 do
    at = at - 1
  end
  return text:sub(1, at - 1)
end

--- One line: control characters become blanks; too long a text is cut with `...`, the tail stays.
function M.line(text, tail)
  text, tail = text:gsub("%c", " "), tail or ""
  if #text + #tail > LINE_MAX then
    text = cut(text, LINE_MAX - #tail - 3) .. "..."
  end
  return text .. tail .. "\n"
end

local function title_of(conversation)
  return conversation.title or "(untitled)"
end

local EVENTS <const> = {
  turn_completed = function(conversation)
    return "efr: turn finished: " .. title_of(conversation)
  end,
  turn_failed = function(conversation, event)
    local err = event.error or {}
    local text = ("efr: turn failed: %s: %s"):format(title_of(conversation), err.message or "")
    return text, err.code == "unauthorized" and "; run efr login openai-compatible" or nil
  end,
  approval_requested = function(conversation, event)
    return ("efr: approval waiting: %s: %s"):format(title_of(conversation), event.summary)
  end,
  shell_command_input_changed = function(conversation, event)
    if event.input == "none" then
      return nil
    end
    return "efr: a command in the hidden shell waits for input: " .. title_of(conversation),
      "; efr shell"
  end,
  shell_command_ended = function(conversation, event)
    local how = event.exit_code and (" (exit %d)"):format(event.exit_code) or ""
    return ("efr: the command left in the hidden shell ended%s: %s"):format(how,
      title_of(conversation))
  end,
}

local Notices = {}
Notices.__index = Notices

--- @param deps {uv: table, fs: table, log: table, query: table, followers: table, dir: string}
function M.new(deps)
  return setmetatable({
    uv = deps.uv, fs = deps.fs, log = deps.log, query = deps.query, followers = deps.followers,
    dir = deps.dir,
  }, Notices)
end

-- Appended, not rewritten: the plugin renames the file before it prints it.
local function append(self, name, line)
  local ok, err = self.fs.mkdirs(self.dir, DIR_MODE)
  local fd
  if ok then
    fd, err = self.uv.fs_open(self.dir .. "/" .. name, "a", FILE_MODE)
  end
  if fd then
    ok, err = self.uv.fs_write(fd, line)
    self.uv.fs_close(fd)
  end
  if not fd or not ok then
    self.log:warn("notice for %s: %s", name, err)
  end
end

--- Writes one line for a terminal.
function Notices:write(tty, text, tail)
  local name = M.file_name(tty)
  if name then
    append(self, name, M.line(text, tail))
  end
end

--- Looks at a committed row of the log.
function Notices:on_row(row)
  local words = EVENTS[row.kind]
  if not words then
    return
  end
  local conversation = self.query:conversation(row.conversation_id)
  local tty = conversation and conversation.tty
  if not tty or self.followers:has(row.conversation_id, tty) then
    return
  end
  local text, tail = words(conversation, row.event)
  if text then
    self:write(tty, text, tail)
  end
end

--- Writes one line for each terminal that was used since then.
--- @param text string
--- @param since_us integer
function Notices:tell(text, since_us)
  local terminals, err = self.query:terminals(since_us)
  if not terminals then
    self.log:warn("notices: %s", err)
  end
  for _, row in ipairs(terminals or {}) do
    self:write(row.tty, text)
  end
end

--- What a reload of the settings came to; each error and each list is told once.
--- @param err string|nil
--- @param waiting string[] keys that wait for a restart
--- @param since_us integer terminals that were used since then hear of it
function Notices:settings(err, waiting, since_us)
  local keys = table.concat(waiting, ", ")
  if err and err ~= self.told_error then
    self:tell("efr: " .. err, since_us)
  end
  if keys ~= "" and keys ~= self.told_keys then
    self:tell("efr: restart efrd to apply: " .. keys, since_us)
  end
  self.told_error, self.told_keys = err, keys
end

--- The line of a restart, for each terminal whose prompts did not run.
--- @param lost table of store.reconcile
function Notices:restarted(lost)
  for _, entry in ipairs(lost) do
    local what = entry.count == 1 and "a queued prompt" or entry.count .. " queued prompts"
    local them = entry.count == 1 and "it" or "them"
    self:write(entry.tty, ("efr restarted; %s did not run; see %s with efr history %s and send %s"
      .. " again"):format(what, them, entry.conversation_id, them))
  end
end

return M
