-- Owns: the state of one conversation in memory: its queue, the running turn, pending questions,
-- its hidden shell's directory, who listens to drafts. One worker runs its turns one by one.
-- Must not know: the wire, how a turn works inside. Runs in efrd, on the loop thread.

local async = require "efr.util.async"
local history = require "efr.conv.history"
local queue = require "efr.conv.queue"
local turn = require "efr.conv.turn"

local M = {}

local IDLE_MS <const> = 60000

---@class efr.Conversation
---@field id string
---@field app table
---@field queue efr.PromptQueue
---@field current table|nil  the running turn
---@field approvals table<string, table>  pending questions by call id
---@field quarantined table[]  what lies in quarantine and was not asked about: {call_id, changes,
---  place}
---@field surface_questions table<string, table>  pending questions about it by their id
---@field lines table<string, table>  shell lines that run, by call id; see conv.input
---@field last_seq integer
---@field cwd string|nil  where the user's newest prompt came from
---@field shell_cwd string|nil  where the hidden shell is
---@field scope table|nil  of its newest turn
---@field scratch string|nil  $SCRATCH, once a turn made it
---@field is_old boolean  it was read from the store
---@field left_behind boolean|nil  a command was left running; what it does can be told later
---@field on_quiet fun()|nil  it holds nothing that the store does not hold
local Conversation = {}
Conversation.__index = Conversation

---@param app table
---@param id string
---@param row? table  its row of the store, when it exists there
---@return efr.Conversation
function M.new(app, id, row)
  return setmetatable({
    app = app,
    id = id,
    queue = queue.new(),
    history = history.new({ query = app.query, json = app.ports.json }, id),
    approvals = {},
    quarantined = {},
    surface_questions = {},
    lines = {},
    listeners = {},
    last_seq = row and row.last_seq or 0,
    title = row and row.title,
    known_cwd = row and row.cwd,
    scope = row and row.scope,
    is_old = row ~= nil,
    appending = 0,
    closed = false,
  }, Conversation)
end

---Appends a batch of events of this conversation. Waits for the commit.
---@param batch table  as store.log takes it; conversation_id is filled in
---@return integer[]|nil seqs
---@return string? message
---@return string? code
function Conversation:append(batch)
  for _, event in ipairs(batch.events or {}) do event.conversation_id = self.id end
  for _, message in ipairs(batch.turn_messages or {}) do message.conversation_id = self.id end
  self.appending = self.appending + 1
  local seqs, message, code = self.app.store:append(batch)
  self.appending = self.appending - 1
  if not seqs then return nil, message, code end
  if seqs[#seqs] then self.last_seq = math.max(self.last_seq, seqs[#seqs]) end
  return seqs
end

---Hands drafts to those who listen. The newest about the context is kept for those who come later.
---@param drafts table[]
function Conversation:send_drafts(drafts)
  for _, draft in ipairs(drafts) do
    if draft.draft.kind == "context" then self.context_draft = draft end
  end
  for _, fn in pairs(self.listeners) do
    for _, draft in ipairs(drafts) do fn(draft) end
  end
end

---Listens to drafts; the newest about the context comes at once.
---@param fn fun(draft: table)
---@return fun() unsubscribe
function Conversation:listen(fn)
  if self.context_draft then fn(self.context_draft) end
  local key = {}
  self.listeners[key] = fn
  return function()
    self.listeners[key] = nil
    if not self.history:is_loaded() then self:look_quiet() end
  end
end

---Whether a turn runs or will run without anything more from outside.
---@return boolean
function Conversation:is_busy()
  return self.current ~= nil or self.working == true or self.queue:len() > 0
end

-- Whether nothing runs or waits, nobody listens, and there is nothing that only memory knows.
local function is_quiet(self)
  if self:is_busy() or self.closed or self.appending > 0 or self.left_behind or self.held
  then
    return false
  end
  for _, part in ipairs({ self.listeners, self.approvals, self.surface_questions,
    self.quarantined }) do
    if next(part) ~= nil then return false end
  end
  local shell = self.app.shells:of_conversation(self.id)
  return not (shell and shell:pid())
end

---Tells the manager when the conversation can be forgotten.
function Conversation:look_quiet()
  if self.on_quiet and is_quiet(self) then self.on_quiet() end
end

-- Ends the wait for a quiet minute.
local function stop_idle(self)
  if self.idle_over then self.idle_over:set(true) end
  self.idle_over = nil
end

-- What can be read again goes, and with it what the caches of other parts hold for a turn.
local function rest(self)
  if self:is_busy() then return end
  stop_idle(self)
  self.history:drop()
  self:look_quiet()
  self.app.guard:rest()
  -- A turn that runs elsewhere looks at its roots once more when it ends.
  if self.app.snapshots and self.app.conversations:counts().running == 0 then
    self.app.snapshots:rest()
  end
  self.app.tidy:soon()
end

-- After a quiet minute.
local function when_idle(self)
  stop_idle(self)
  local over = async.future()
  self.idle_over = over
  async.spawn(function()
    local cut_short = async.with_timeout(IDLE_MS, function() over:get() end)
    if not cut_short then rest(self) end
  end)
end

---Runs what waits, if nothing runs. Never waits.
function Conversation:kick()
  if self.working or self.closed or self.held then return end
  self.working = true
  async.spawn(function()
    local ran = false
    while not self.closed do
      local prompt = self.queue:take()
      if not prompt then break end
      ran = true
      stop_idle(self)
      turn.run(self, prompt)
      self.app.tidy:soon()
    end
    self.working = false
    if self.on_rest then self.on_rest() end
    if ran then when_idle(self) end
  end)
end

-- Records what the hidden shell reports. With its shell a conversation is mostly over.
local function record_shell_event(self, kind, fields)
  local event = { kind = kind }
  for name, value in pairs(fields or {}) do event[name] = value end
  async.spawn(function()
    local ok, message = self:append({ events = { event } })
    if not ok then self.app.log:warn("conversation %s: %s: %s", self.id, kind, message) end
    if kind == "shell_exited" then rest(self) end
  end)
end

-- Whether commands of this conversation knew a shell that the pool does not know any more.
local function had_shell(self)
  return self.is_old and not self.app.shells:of_conversation(self.id)
    and self.app.query:had_shell(self.id) or nil
end

---The hidden shell; it starts with its first command. `cwd` is where a new one begins.
---@return table|nil hidden
---@return string? message
function Conversation:shell()
  return self.app.shells:get(self.id, {
    cwd = self.shell_cwd,
    scratch = self.scratch,
    had_shell = had_shell(self),
    on_event = function(kind, fields) record_shell_event(self, kind, fields) end,
  })
end

---Stops the running turn for the end of the daemon and waits until it has ended.
function Conversation:close()
  self.closed = true
  local current = self.current
  if not current then return end
  async.await(function(resume)
    self.on_rest = resume
    current.token:cancel("shutdown")
  end)
end

return M
