-- Owns: whether the user is there: away by their own word or after a time without input, and how
-- long a question waits for somebody who is away.
-- Must not know: what is asked, the wire. Runs in efrd; nothing here waits but its own tasks.
--
-- Policy: input is a prompt, an answer or keys for a hidden shell; any of them ends being away. It
-- is looked at every 15 s while a question waits, and when one is asked; without a question no
-- timer runs. A question that waits already counts from the look that found the user away.

local async = require "efr.util.async"
local events = require "efr.conv.events"

local M = {}

M.CHECK_MS = 15000 ---@type integer

local MINUTE_US <const> = 60 * 1000000

---@class efr.Presence
---@field away boolean
---@field since_us integer  when that began
local Presence = {}
Presence.__index = Presence

---@param app table  ports, config, store, log
---@return efr.Presence
function M.new(app)
  local now = app.ports.sys.now_us()
  return setmetatable({
    app = app, away = false, since_us = now, input_us = app.ports.sys.mono_us(), waiting = {},
  }, Presence)
end

-- The time that a waiting question still has begins now.
local function begin_wait(self, entry)
  local mark = {}
  entry.mark = mark
  async.spawn(function()
    async.sleep(self.app.config:get("presence.away_wait_secs") * 1000)
    if entry.mark == mark then
      entry.mark = nil
      entry.give_up()
    end
  end)
end

local function change(self, away, by)
  if self.away == away then return end
  self.away, self.since_us = away, self.app.ports.sys.now_us()
  for entry in pairs(self.waiting) do
    entry.mark = nil
    if away then begin_wait(self, entry) end
  end
  async.spawn(function()
    local ok, err = self.app.store:append {
      events = { events.make("presence_changed", { away = away, by = by }) },
    }
    if not ok then self.app.log:error("presence: %s", err) end
  end)
end

-- Whether so much time has passed without input that the user is away.
local function look(self)
  local limit = self.app.config:get("presence.away_after_minutes") * MINUTE_US
  if not self.away and self.app.ports.sys.mono_us() - self.input_us >= limit then
    change(self, true, "idle")
  end
end

-- Looks again and again as long as a question waits.
local function watch(self)
  if self.watching then return end
  self.watching = true
  async.spawn(function()
    while next(self.waiting) do
      async.sleep(M.CHECK_MS)
      look(self)
    end
    self.watching = false
  end)
end

---The user did something.
function Presence:input()
  self.input_us = self.app.ports.sys.mono_us()
  change(self, false, "input")
end

---The user says that they are away, or there.
---@param away boolean
function Presence:set(away)
  if not away then self.input_us = self.app.ports.sys.mono_us() end
  change(self, away, "user")
end

---Whether the user is away now.
---@return boolean
function Presence:is_away()
  look(self)
  return self.away
end

---A question waits: `give_up` is called when nobody who is away answered in time.
---@param give_up fun()
---@return fun() remove
function Presence:wait(give_up)
  local entry = { give_up = give_up }
  self.waiting[entry] = true
  if self:is_away() and not entry.mark then begin_wait(self, entry) end
  watch(self)
  return function()
    entry.mark, self.waiting[entry] = nil, nil
  end
end

return M
