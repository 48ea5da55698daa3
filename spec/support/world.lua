-- Owns: a small daemon for specs of conv/ and model/: fake store, query, files, shell, sandbox,
-- tools and provider around the real conversation code. Nothing here waits but through tasks.

local json = require "spec.support.json"

local M = {}

local function ids()
  local n = 0
  return function()
    n = n + 1
    return ("00000000-0000-7000-8000-%012x"):format(n)
  end
end

---A file system in a table: path -> text, or true for a directory.
function M.fs(tree)
  local fs = { tree = tree or {} }
  local function missing(path) return nil, path .. ": no such file", "ENOENT" end
  function fs.read_file(path)
    local text = fs.tree[path]
    if type(text) ~= "string" then return missing(path) end
    return text
  end
  fs.read_real = fs.read_file
  function fs.lstat(path)
    local node = fs.tree[path]
    if node == nil then return missing(path) end
    local is_dir = node == true
    return { type = is_dir and "dir" or "file", mode = fs.modes and fs.modes[path]
      or (is_dir and 448 or 384), uid = 1000, size = is_dir and 0 or #node, mtime_us = 1, ino = 1 }
  end
  fs.stat = fs.lstat
  function fs.realpath(path) return path end
  function fs.mkdirs(path)
    local at = ""
    for part in path:gmatch("[^/]+") do
      at = at .. "/" .. part
      fs.tree[at] = fs.tree[at] or true
    end
    return true
  end
  function fs.mkdir(path)
    if fs.tree[path] ~= nil then return nil, "exists", "EEXIST" end
    fs.tree[path] = true
    return true
  end
  fs.mkdirs_real = fs.mkdirs
  function fs.rmdir(path) return fs.unlink(path) end
  function fs.write_atomic(path, text, mode)
    fs.tree[path] = text
    fs.modes = fs.modes or {}
    fs.modes[path] = mode
    return true
  end
  function fs.unlink(path)
    if fs.tree[path] == nil then return missing(path) end
    fs.tree[path] = nil
    return true
  end
  function fs.check_private_dir(path)
    local info = fs.lstat(path)
    if info.mode & 63 ~= 0 then return nil, path .. " is open to others" end
    return true
  end
  function fs.readdir(path)
    local out = {}
    for name in pairs(fs.tree) do
      local entry = name:match("^" .. path:gsub("%W", "%%%0") .. "/([^/]+)$")
      if entry then out[#out + 1] = { name = entry } end
    end
    return out
  end
  return fs
end

local DEFAULTS = {
  ["permissions.mode"] = "auto", ["conversation.max_queued"] = 3,
  ["presence.away_after_minutes"] = 10, ["presence.away_wait_secs"] = 300,
  ["conversation.update_interval_ms"] = 200, ["conversation.draft_interval_ms"] = 16,
  ["conversation.tty_idle_hours"] = 12, ["model.provider"] = "fake", ["sandbox.enabled"] = true,
}

local function new_config(values)
  local config = { values = {} }
  for key, value in pairs(DEFAULTS) do config.values[key] = value end
  for key, value in pairs(values or {}) do config.values[key] = value end
  function config:get(key) return self.values[key] end
  return config
end

-- What of luv makes a file where none is.
local function new_uv(fs)
  return {
    fs_open = function(path)
      if fs.tree[path] ~= nil then return nil, "exists", "EEXIST" end
      fs.tree[path] = ""
      return 9
    end,
    fs_fstat = function() return { ino = 1 } end,
    fs_close = function() return true end,
    fs_stat = function() return nil end,
  }
end

-- The log: every batch that was taken, and the tables that query reads from it.
local function new_store(world)
  local async = world.async
  local store = { events = {}, receipts = {}, messages = {}, batches = {}, next_seq = 1 }
  function store:append(batch)
    local hold = self.hold
    if hold then async.await(function(resume) hold(resume) end) end
    if self.fail then
      local message, code = self.fail(batch)
      if message then return nil, message, code end
    end
    local seqs = {}
    for i, event in ipairs(batch.events or {}) do
      seqs[i] = self.next_seq
      self.next_seq = self.next_seq + 1
      local copy = json.decode(json.encode(event))
      self.events[#self.events + 1] = { seq = seqs[i], kind = event.kind, event = copy,
        conversation_id = event.conversation_id, turn_id = event.turn_id }
    end
    if batch.receipt then self.receipts[batch.receipt.command_id] = batch.receipt end
    for _, message in ipairs(batch.turn_messages or {}) do
      self.messages[#self.messages + 1] = message
    end
    self.batches[#self.batches + 1] = batch
    return seqs
  end
  return store
end

local ENDS = { turn_completed = "completed", turn_failed = "failed", turn_cancelled = "cancelled",
  turn_interrupted = "interrupted" }

local function new_query(store)
  local query = {}
  function query:conversation(id)
    local row
    for _, e in ipairs(store.events) do
      if e.conversation_id == id then
        row = row or { id = id, updated_at = 0 }
        row.last_seq, row.updated_at = e.seq, e.seq
        if e.kind == "prompt_queued" then row.title = row.title or e.event.text end
        if e.kind == "turn_started" then row.cwd = e.event.cwd end
      end
    end
    return row
  end
  function query:conversation_of_tty(tty)
    local found
    for _, e in ipairs(store.events) do
      local context = e.event.context
      if e.kind == "prompt_queued" and context and context.tty == tty then
        found = query:conversation(e.conversation_id)
        found.shell_pid = context.shell_pid
      end
    end
    return found
  end
  function query:turns(id)
    local rows, turn_of = {}, {} -- luacheck: ignore 241
    for _, e in ipairs(store.events) do
      if e.conversation_id == id then
        if e.kind == "prompt_queued" then
          local row = { id = e.turn_id, queued_seq = e.seq, status = "queued" }
          rows[#rows + 1] = row
          turn_of[e.turn_id] = row
        elseif e.kind == "turn_started" then
          turn_of[e.turn_id].started_at = e.seq
        elseif ENDS[e.kind] then
          turn_of[e.turn_id].status = ENDS[e.kind]
        end
      end
    end
    return rows
  end
  function query:events(id, opts)
    local rows = {}
    for _, e in ipairs(store.events) do
      if e.conversation_id == id and e.seq > (opts.after or 0) then
        rows[#rows + 1] = e
        if opts.after then break end
      end
    end
    return rows
  end
  function query:turn(id)
    for _, e in ipairs(store.events) do
      if e.kind == "prompt_queued" and e.turn_id == id then
        return { id = id, conversation_id = e.conversation_id }
      end
    end
  end
  function query:had_shell(id)
    for _, e in ipairs(store.events) do
      if e.conversation_id == id and e.kind == "shell_started" then return true end
    end
    return false
  end
  function query:turn_events(id, turn_id)
    local rows = {}
    for _, e in ipairs(store.events) do
      if e.conversation_id == id and e.turn_id == turn_id then rows[#rows + 1] = e end
    end
    return rows
  end
  function query:turn_messages(id)
    local rows = {}
    for _, m in ipairs(store.messages) do
      if m.conversation_id == id then
        rows[#rows + 1] = { turn_id = m.turn_id, position = m.position, provider = m.provider,
          model = m.model, message = m.message }
      end
    end
    return rows
  end
  return query
end

---The request with its `messages` as a turn hands them over: in `sent`, rendered by the provider.
function M.rendered(provider, request)
  request.sent = {}
  for i, message in ipairs(request.messages) do request.sent[i] = assert(provider:render(message)) end
  request.messages = nil
  return request
end

---The canonical messages of a request to the provider below.
function M.messages(request)
  return json.decode("[" .. table.concat(request.sent, ",") .. "]")
end

-- A provider that is driven by hand: each request is kept, `reply` answers the newest.
local function new_provider()
  local provider = { id = "fake", requests = {}, cancelled = 0 }
  function provider.default_model() return "fake-model" end
  function provider.models() return { "fake-model" } end
  function provider.edit_tool() return "edit" end
  function provider.window() return 1000 end
  function provider.max_output_tokens() return nil end
  function provider.render(_, message) return json.encode(message) end
  function provider:start(request, on_event)
    request.messages = M.messages(request)
    self.requests[#self.requests + 1] = request
    self.emit = on_event
    if self.script then
      for _, event in ipairs(self.script(request, #self.requests)) do on_event(event) end
    end
    return { cancel = function() self.cancelled = self.cancelled + 1 end }
  end
  return provider
end

---The events of an answer with text and calls ({name, input}).
function M.answer(text, calls, usage)
  local out = {}
  if text then out[1] = { kind = "text_delta", text = text } end
  for i, call in ipairs(calls or {}) do
    out[#out + 1] = { kind = "tool_call_start", index = i - 1, call_id = "p" .. i, name = call[1] }
    out[#out + 1] = { kind = "tool_call_end", index = i - 1, call_id = "p" .. i, name = call[1],
      input = call[2], raw = json.encode(call[2] or {}), error = call.error }
  end
  out[#out + 1] = usage or { kind = "usage", input_tokens = 10, output_tokens = 5 }
  out[#out + 1] = { kind = "done", stop_reason = calls and "tool_use" or "end_turn" }
  return out
end

-- Tools whose runs are kept in `runs`; `shell` declares a line, `look` nothing, `slow` waits.
local function new_tools(world)
  local list = {
    { name = "shell", description = "d", schema = { type = "object" },
      declare = function(input, ctx)
        if type(input.command) ~= "string" then return nil, "command is missing" end
        return { { kind = "line", text = input.command, cwd = ctx.cwd } }
      end,
      run = function(input, ctx)
        world.runs[#world.runs + 1] = { tool = "shell", input = input, launch = ctx.launch }
        local r = ctx.shell({ line = input.command, timeout_ms = 30000 })
        if r.outcome == "setup_failed" then
          return { output = "[the sandbox could not start: " .. r.setup_error .. "]",
            is_error = true }
        end
        local notes = table.concat(r.notes or {}, "\n")
        return { output = (r.output or "") .. notes, exit_code = r.exit_code,
          is_error = r.exit_code ~= 0 }
      end },
    { name = "look", description = "d", schema = { type = "object" },
      declare = function() return {} end,
      run = function(input, ctx)
        world.runs[#world.runs + 1] = { tool = "look", input = input }
        if input.boom then error("boom") end
        if input.say then ctx.on_output(input.say, #input.say) end
        return { output = "saw " .. tostring(input.n),
          changes = input.path and { files = { { path = input.path, kind = "modified", added = 1,
            removed = 2 } }, added = 1, removed = 2 } or nil }
      end },
    { name = "edit", description = "d", schema = { type = "object" },
      declare = function() return {} end, run = function() return { output = "edited" } end },
    { name = "apply_patch", description = "d", schema = { type = "object" },
      declare = function() return {} end, run = function() return { output = "patched" } end },
  }
  local tools = {}
  function tools.list() return list end
  return tools
end

local function new_shells(world)
  local hidden = { cwd = nil, moves = {} }
  function hidden:set_cwd(dir)
    self.moves[#self.moves + 1] = dir
    if world.refuse_move then return false end
    self.cwd = dir
    return true
  end
  function hidden:is_running() return world.shell_runs ~= nil end
  function hidden:status()
    return { state = world.shell_runs and "running" or "idle", line = world.shell_runs }
  end
  function hidden:search_path()
    if world.search_path == false then return nil end
    return world.search_path or "/usr/bin"
  end
  function hidden:is_unmarked() return world.unmarked == true end
  function hidden:git_environment()
    return { told = "", values = { HOME = "/home/u", GIT_PAGER = "cat" } }
  end
  function hidden:run(opts)
    world.lines[#world.lines + 1] = { line = opts.line, launch = opts.launch, cwd = self.cwd }
    if world.run_line then return world.run_line(opts, self) end
    return { outcome = "finished", output = "ran " .. opts.line, exit_code = 0, cwd = self.cwd }
  end
  function hidden:pid() return not world.shell_ended and 77 or nil end
  return { hidden = hidden, has_zsh = function() return true end,
    of_conversation = function() return #world.lines > 0 and hidden or nil end,
    close_conversation = function(_, id) world.closed_shell = id end,
    get = function(_, _, opts)
    world.shell_opts = opts
    hidden.cwd = hidden.cwd or opts.cwd
    hidden.on_event = opts.on_event
    return hidden
  end }
end

-- The surface guard: `world.planted` are the reports of the next calls, in their order.
local function new_guard(world)
  local guard = { restored = {}, rests = 0 }
  world.planted = {}
  function guard.before(_, call)
    if world.refuse_guard then error(world.refuse_guard) end
    guard.newest = call
    return { after = function(_, cwd)
      guard.cwd = cwd
      if world.guard_fails then error(world.guard_fails) end
      return table.remove(world.planted, 1) or { changes = {}, touched = {} }
    end }
  end
  function guard.restore(_, place)
    guard.restored[#guard.restored + 1] = place
    return world.not_restored or {}
  end
  function guard.report(_, touched)
    local out = {}
    for path in pairs(touched) do out[#out + 1] = { path = path } end
    return out
  end
  function guard.is_surface(_, path) return path:find("Makefile$") ~= nil end
  function guard.rest() guard.rests = guard.rests + 1 end
  world.guard = guard
  return guard
end

---A fresh world. opts: config, status (of the sandbox), projects.
function M.new(opts)
  opts = opts or {}
  if not pcall(require, "efr.tools.registry") then
    package.preload["efr.tools.registry"] = function() return {} end
  end
  local async, clock = require("spec.helper").async()
  local world = { async = async, clock = clock, runs = {}, lines = {}, logged = {}, prepared = {} }
  world.fs = M.fs({ ["/home/u"] = true })
  world.store = new_store(world)
  world.provider = new_provider()
  world.shells = new_shells(world)
  local projects = opts.projects or { { id = "p1", root = "/home/u/p" } }
  local log = setmetatable({}, { __index = function(_, level)
    return function(_, format, ...)
      world.logged[#world.logged + 1] = level .. " " .. format:format(...)
    end
  end })
  local app = {
    ports = {
      json = json, fs = world.fs, uv = new_uv(world.fs),
      text = { is_utf8 = function(s) return utf8.len(s) ~= nil end, clean = function(s)
        return utf8.len(s) and s or (s:gsub("[\x80-\xff]", "\xEF\xBF\xBD"))
      end },
      sys = { now_us = function() return clock.now * 1000 end,
        mono_us = function() return clock.now * 1000 end, uuid7 = ids(),
        hostname = function() return "box" end, getuid = function() return 1000 end,
        random = function(n) return ("\0"):rep(n) end,
        release_memory = function() world.released = (world.released or 0) + 1 end,
        kill = function(pid) if pid == 42 then return true end return nil, "gone", "ESRCH" end },
      load_chunk = function(text, name, env) return load(text, name, "t", env) end,
    },
    env = { HOME = "/home/u" }, version = "0.0.1",
    paths = { config = "/home/u/.config/efr", data = "/home/u/.local/share/efr",
      state = "/home/u/.local/state/efr", runtime = "/run/user/1000/efr" },
    config = new_config(opts.config), store = world.store, query = new_query(world.store),
    log = log, tools = new_tools(world), shells = world.shells,
    projects = {
      list = function() return projects end,
      containing = function(_, dir)
        for _, p in ipairs(projects) do
          if dir == p.root or dir:sub(1, #p.root + 1) == p.root .. "/" then return p end
        end
      end,
    },
    providers = { active = function() return world.provider, "fake" end },
    git = {
      env = {}, within = function() return function() return nil, "no git", "EFR_GIT" end end,
    },
    sandbox = {
      answers = function() return true end,
      status = function() return opts.status or { available = true } end,
      check_again = function() world.checked_again = (world.checked_again or 0) + 1 end,
      prepare = function(_, spec)
        world.prepared[#world.prepared + 1] = spec
        if world.refuse_sandbox then return nil, world.refuse_sandbox, "EFR_SANDBOX" end
        return {
          cleanup = function() spec.cleaned = true end,
          deletes = function() return world.deletes or {} end,
          apply_deletes = function(_, list)
            world.applied = list
            return table.unpack(world.freed, 1, 3)
          end,
          refuse_deletes = function(_, list) world.refused = list end,
        }
      end,
    },
    guard = new_guard(world),
    answering = {
      somebody = function() return world.people ~= false end,
      wait = function(_, _, is_over)
        while world.people ~= false and not is_over() do
          async.await(function(resume) world.wake = resume end)
        end
      end,
      wake = function() if world.wake then world.wake() end end,
    },
  }
  world.app = app
  app.full_ended = function() world.full_ended = (world.full_ended or 0) + 1 end
  local manager = require "efr.conv.manager"
  app.conversations = manager.new(app)
  local command = 0
  ---Calls a command of the manager in a task and returns its results (it must not have to wait).
  function world:call(name, params, session)
    command = command + 1
    params.command_id = params.command_id or "cmd-" .. command
    local out
    async.spawn(function()
      out = table.pack(app.conversations[name](app.conversations, params,
        session or { origin = "shell" }))
    end)
    if not out then return nil, "still waiting" end
    return table.unpack(out, 1, out.n)
  end
  function world:send(text, more)
    local params = { text = text, context = { pwd = "/home/u/p" } }
    for key, value in pairs(more or {}) do params[key] = value end
    return self:call("prompt_send", params)
  end
  ---Lets the provider say something and end its answer.
  function world:reply(events)
    local emit = self.provider.emit
    for _, event in ipairs(events) do emit(event) end
  end
  ---The events of a kind, or all their kinds in order without updates.
  function world:find(kind)
    local out = {}
    for _, e in ipairs(self.store.events) do
      if e.kind == kind then out[#out + 1] = e.event end
    end
    return out
  end
  function world:kinds()
    local out = {}
    for _, e in ipairs(self.store.events) do
      if not e.kind:find("_updated$") then out[#out + 1] = e.kind end
    end
    return table.concat(out, " ")
  end
  return world
end

return M
