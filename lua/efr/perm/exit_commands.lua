-- Owns: the commands of a line as the exits see them, and the exits that come from a command's
-- words and redirections together with facts: what it throws away, devices, who makes a file.
-- Must not know: exits by program (exit_programs), what a path is (exit_paths).
-- Runs in efrd and efr. Pure.

local exit_paths = require "efr.perm.exit_paths"
local line_of = require "efr.perm.line"
local paths = require "efr.perm.paths"
local words = require "efr.perm.exit_words"

local M = {}

local find = string.find

---@class efr.perm.Seen  one command that may run
---@field name string?  the program without its directory
---@field args string[]  shapes of the words after it; "\0" stands for what is not known
---@field words table[]  of the lenient reading, with the program first
---@field assigns string[]  names of the variables set before it
---@field redirs table[]
---@field moved boolean?  its directory is not known
---@field wrappers string[]
---@field builtin boolean?
---@field cwd string  where the line starts
---@field near_devices boolean?  it or the home directory has "dev" in it, as what is below /dev
---@field unread boolean?  a part that could not be read
---@field compound boolean?  no command of its own: the redirections of a loop and the like

-- Not to be changed.
local NOTHING <const> = {}

local function names_of(assigns)
  if not assigns or not assigns[1] then return NOTHING end
  local out = {}
  for i, assign in ipairs(assigns) do out[i] = assign.name end
  return out
end

local function seen(command, item, near_devices)
  local args, list, node = {}, command.words, command.node
  for i = 2, #list do args[i - 1] = list[i].shape end
  local out = {
    name = command.program, args = args, words = list, assigns = names_of(command.assigns),
    redirs = command.redirs or NOTHING, wrappers = command.wrappers or NOTHING, cwd = item.cwd,
  }
  -- Most commands are none of these.
  if near_devices then out.near_devices = true end
  if command.cwd_lost then out.moved = true end
  if command.builtin then out.builtin = true end
  if command.unread then out.unread = true end
  if node and node.kind ~= "simple" then out.compound = true end
  return out
end

---The commands of a line.
---@param call table
---@param item table  requirement of the kind line
---@return efr.perm.Seen[]
function M.of_line(call, item)
  local out = {}
  local near = find(item.cwd, "dev", 1, true) or find(call.machine.home, "dev", 1, true)
  local found = line_of.found(call.line(item.text))
  for i = 1, #found do out[i] = seen(found[i], item, near) end
  return out
end

---The path that a word means.
---@param call table
---@param cmd efr.perm.Seen
---@param word table?
---@return string? path  in normal form; nil when it is not known
function M.path(call, cmd, word)
  local text = word and word.text
  if not text or text == "" or word.glob or word.user then return nil end
  if word.home then
    text = call.machine.home .. text:sub(2)
  elseif text:sub(1, 1) ~= "/" then
    if cmd.moved then return nil end
    text = cmd.cwd .. "/" .. text
  end
  return paths.normalise(text, call.machine)
end

-- Devices ---------------------------------------------------------------------------------------

local function device_of(call, path, emit)
  local normal = path and paths.normalise(path, call.machine)
  if normal and exit_paths.device(normal) == "device" then
    emit("device", { target = normal, grants = { { device = normal } },
      why = "it is a device of this machine" })
  end
end

-- Only a path with "dev" in it leads below /dev: in the word, or in the directory it starts from.
local function devices(call, cmd, emit)
  local args, all = cmd.args, cmd.near_devices
  for i = 1, #args do
    local shape = args[i]
    if all or find(shape, "dev", 1, true) then
      device_of(call, M.path(call, cmd, cmd.words[i + 1]), emit)
      local value = shape:match("=(/dev/.+)$")
      if value and not words.is_unknown(value) then device_of(call, value, emit) end
    end
  end
end

-- What throws away ------------------------------------------------------------------------------

local function destructive(emit, target, why, routine)
  emit("destructive", { target = target, why = why, routine = routine })
end

local function shown_operand(word)
  return words.shown(word.shape)
end

-- Operands of a command, with options skipped.
local function operands(cmd)
  local out, ended = {}, false
  for i = 2, #cmd.words do
    local shape = cmd.words[i].shape
    if not ended and shape == "--" then
      ended = true
    elseif ended or shape == "-" or shape:sub(1, 1) ~= "-" then
      out[#out + 1] = cmd.words[i]
    end
  end
  return out
end
M.operands = operands

local function is_recursive(cmd)
  for _, arg in ipairs(cmd.args) do
    if arg == "--" then return false end
    if arg:find("^%-%a*[rR]") then return true end
    if #arg > 2 and ("--recursive"):sub(1, #arg) == arg then return true end
  end
  return false
end

-- A directory without a count may hold tracked files.
local function has_tracked(call, path)
  local what = call.target(path)
  if what == "missing" or what == "file" then return false end
  return (call.facts.tracked or {})[path] ~= 0
end

local function rm(call, cmd, emit)
  if not is_recursive(cmd) then return end
  for _, word in ipairs(operands(cmd)) do
    local path = M.path(call, cmd, word)
    if not path then
      destructive(emit, shown_operand(word), "rm -r of a place that is not known")
    elseif has_tracked(call, path) then
      destructive(emit, path, "rm -r of a directory that may hold tracked files", true)
    end
  end
end

local function each_operand(why, routine)
  return function(call, cmd, emit)
    for _, word in ipairs(operands(cmd)) do
      local path = M.path(call, cmd, word)
      destructive(emit, path or shown_operand(word), why, routine and path ~= nil)
    end
  end
end

local function truncate(call, cmd, emit)
  local skip = { ["-s"] = true, ["--size"] = true, ["-r"] = true, ["--reference"] = true }
  for i = 2, #cmd.words do
    local word = cmd.words[i]
    if word.shape:sub(1, 1) ~= "-" and not skip[cmd.words[i - 1].shape] then
      local path = M.path(call, cmd, word)
      destructive(emit, path or shown_operand(word), "truncate throws content away", path ~= nil)
    end
  end
end

local function dd(call, cmd, emit)
  for i = 2, #cmd.words do
    local value = cmd.words[i].shape:match("^of=(.*)$")
    if value then
      local known = cmd.words[i].text ~= nil
      local path = known and M.path(call, cmd, { text = value }) or nil
      if not (path and exit_paths.device(path)) then
        destructive(emit, path or words.shown(value), "dd overwrites its output", known)
      end
    end
  end
end

local function find_deletes(_, cmd, emit)
  if not words.has(cmd.args, "-delete") then return end
  local start = cmd.args[1]
  local literal = start and start:sub(1, 1) ~= "-" and not words.is_unknown(start)
  destructive(emit, "find -delete", "find deletes what it finds", literal)
end

local HANDLERS <const> = {
  rm = rm, shred = each_operand("shred overwrites a file"), truncate = truncate, dd = dd,
  find = find_deletes,
}

local KEEPS_NOTHING <const> = { [":"] = true, ["true"] = true }

-- `: > F`, `true > F` and a bare `> F` leave an existing file empty.
local function clobbers(call, cmd, emit)
  local bare = #cmd.words == 0 and not cmd.unread and not cmd.compound
  local empty = bare or cmd.name and KEEPS_NOTHING[cmd.name]
  if not empty then return end
  for _, redir in ipairs(cmd.redirs) do
    local path = redir.write and not redir.append and redir.op ~= "<>"
      and M.path(call, cmd, redir.target)
    if path and not exit_paths.device(path) and call.target(path) ~= "missing" then
      destructive(emit, path, "it empties the file", true)
    end
  end
end

---Reports the exits of one command that its words, its redirections and the facts show.
---@param call table
---@param cmd efr.perm.Seen
---@param emit fun(kind: string, detail: table)
function M.exits(call, cmd, emit)
  local handler = HANDLERS[cmd.name]
  if handler then handler(call, cmd, emit) end
  clobbers(call, cmd, emit)
  devices(call, cmd, emit)
end

-- Makers ----------------------------------------------------------------------------------------

local MAKERS <const> = { tee = "tee", touch = "touch", mkdir = "mkdir" }
-- Their last operand may be a directory that takes what the others name.
local COPIES <const> = { cp = true, mv = true, ln = true, install = true, rsync = true, scp = true }

local function git_maker(cmd)
  local sub, at = words.first_operand(cmd.args, { ["-C"] = true, ["-c"] = true })
  if sub == "clone" then
    local _, place = words.first_operand(cmd.args, {}, 3)
    return place and "git clone", place
  elseif sub == "worktree" and cmd.args[at + 1] == "add" then
    local _, place = words.first_operand(table.move(cmd.args, at + 2, #cmd.args, 1, {}),
      { ["-b"] = true, ["-B"] = true, ["--reason"] = true })
    return place and "git worktree add", place and place + at + 1
  end
  return nil
end

---Adds, for each path that the commands make in a way that efr knows, what makes it.
---@param call table
---@param commands efr.perm.Seen[]
---@param out table<string, string>
function M.makers(call, commands, out)
  local function add(cmd, word, maker)
    local path = M.path(call, cmd, word)
    if path then out[path] = out[path] or maker end
  end
  for _, cmd in ipairs(commands) do
    for _, redir in ipairs(cmd.redirs) do
      if redir.write then add(cmd, redir.target, "redirect") end
    end
    if MAKERS[cmd.name] then
      for _, word in ipairs(operands(cmd)) do add(cmd, word, MAKERS[cmd.name]) end
    elseif COPIES[cmd.name] then
      local all = operands(cmd)
      add(cmd, all[#all], "into")
    elseif cmd.name == "git" then
      local maker, place = git_maker(cmd)
      if maker then add(cmd, cmd.words[place + 1], maker) end
    end
  end
end

return M
