-- Owns: the commands that one list of words makes for the lenient reading: the command itself, and
-- the one behind each wrapper, `find -exec`, `xargs`, `eval` or a shell with a line of text.
-- Must not know: nodes of the AST, rules, exits, or what a program does.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.
--
-- Commands are those of efr.perm.lenient. The state is that of one reading: {out = {command...},
-- moved, values, work, deep, budget, as_other, read_line = fun(state, text)}; read_line reads an
-- inner line.

local names = require "efr.perm.data.shell_words"
local word_values = require "efr.perm.lenient_words"
local wrappers = require "efr.perm.wrappers"

local M = {}

-- Lines inside lines (`sh -c "sh -c ..."`), and wrappers before wrappers.
local LINES_DEEP <const> = 4
local WRAPPERS_DEEP <const> = 16
-- Words of all commands together. Behind them the line is only searched for names.
local WORK_MAX <const> = 8192

local NOTHING <const> = {}

---Of a command without wrappers, assignments or redirections; not to be changed.
M.NOTHING = NOTHING
M.WORK_MAX, M.LINES_DEEP = WORK_MAX, LINES_DEEP

local find, match = string.find, string.match
local builtins <const>, reserved <const> = names.builtins, names.reserved
local privileged <const> = names.privileged
local is_wrapper <const> = wrappers.is_wrapper

local function base_name(text)
  return find(text, "/", 1, true) and match(text, "[^/]*$") or text
end

-- One command ----------------------------------------------------------------------------------

---Adds a part of the line that is not known.
---@param state table
local function unread(state)
  state.out[#state.out + 1] = {
    words = {}, wrappers = {}, assigns = {}, redirs = {}, piped = {}, cwd_lost = state.moved or nil,
    unread = true,
  }
end
M.unread = unread

-- What most commands are not: their tables stay small without it.
local function mark(state, command, more)
  if state.moved or more.moved then command.cwd_lost, command.displaced = true, more.moved end
  local as_other = privileged[command.program] or more.privileged or state.as_other
  if as_other then command.privileged = as_other end
  local name = command.name
  -- Where the shell itself looks the name up.
  if name and (more.in_shell or not more.wrappers[1]) then
    local builtin = builtins[name] or reserved[name]
    if builtin then command.builtin = builtin end
  end
end

---Adds a command.
---@param state table
---@param words table[]
---@param more table  {wrappers, assigns?, redirs?, piped?, node?, moved?, privileged?, in_shell?}
---@return table command
local function make_command(state, words, more)
  local first = words[1]
  local name = first and not first.glob and first.text or nil
  local program = name and base_name(name)
  local command = {
    words = words, name = name, program = program, wrappers = more.wrappers,
    assigns = more.assigns or NOTHING, redirs = more.redirs or NOTHING,
    piped = more.piped or NOTHING, node = more.node,
  }
  if not name then command.opaque = true end
  mark(state, command, more)
  state.work = state.work + #words + 1
  local out = state.out
  out[#out + 1] = command
  return command
end
M.make = make_command

local IN_SHELL <const> = {
  builtin = true, noglob = true, nocorrect = true, time = true, ["-"] = true, command = true,
  exec = true,
}

local peel

-- Wrappers --------------------------------------------------------------------------------------

-- The command behind a wrapper, with the state that the wrapper adds.
local function peel_inner(state, outer, words, more, moved)
  local chain = table.move(more.wrappers, 1, #more.wrappers, 1, {})
  chain[#chain + 1] = outer.program
  if #chain > WRAPPERS_DEEP then return end
  peel(state, words, {
    wrappers = chain, node = more.node, privileged = outer.privileged, piped = more.piped,
    moved = more.moved or moved, in_shell = (more.in_shell or #more.wrappers == 0)
      and IN_SHELL[outer.program],
  })
end

local function tail(words, from)
  return table.move(words, from, #words, 1, {})
end

-- A line of text that a program runs: read when it is known.
local function inner_text(state, text, outer)
  if text == "" then return end
  if not text or state.deep >= LINES_DEEP or #text > state.budget then
    unread(state)
    return
  end
  local as_other = state.as_other
  state.deep, state.budget = state.deep + 1, state.budget - #text
  state.as_other = as_other or outer.privileged
  state.read_line(state, text)
  state.deep, state.as_other = state.deep - 1, as_other
end

local function joined_text(words, from)
  local texts = {}
  for i = from, #words do
    if not words[i].text then return nil end
    texts[#texts + 1] = words[i].text
  end
  return table.concat(texts, " ")
end

-- What xargs adds to its words: those of an `echo` before it, or some that are not known.
local function xargs_words(words, more)
  local out = table.move(words, 1, #words, 1, {})
  local from = more.piped and more.piped.from
  if from and from.program == "echo" then
    for i = 2, #from.words do
      if from.words[i].shape:sub(1, 1) ~= "-" then out[#out + 1] = from.words[i] end
    end
  else
    out[#out + 1] = word_values.unknown()
  end
  return out
end

local function peel_wrapper(state, command, words, more)
  local peeled = wrappers.peel(command.program, words)
  local line = peeled.line and words[peeled.line]
  if peeled.attached then
    inner_text(state, not peeled.attached:find("\0", 1, true) and peeled.attached or nil,
      command)
  end
  if line then inner_text(state, line.text, command) end
  if peeled.joined then inner_text(state, joined_text(words, peeled.joined), command) end
  if peeled.start then
    local inner = tail(words, peeled.start)
    if command.program == "xargs" then inner = xargs_words(inner, more) end
    peel_inner(state, command, inner, more, peeled.moved)
  end
end

-- find ------------------------------------------------------------------------------------------

local EXEC <const> = { ["-exec"] = true, ["-execdir"] = true, ["-ok"] = true, ["-okdir"] = true }
local FD_EXEC <const> = { ["-x"] = true, ["-X"] = true, ["--exec"] = true,
  ["--exec-batch"] = true }
local FIND_OPTION <const> = { ["-H"] = true, ["-L"] = true, ["-P"] = true }

---The start points of find: its words up to the first test.
---@param words table[]
---@return table[] points  empty: the directory it runs in
function M.start_points(words)
  local out, i = {}, 2
  while words[i] do
    local shape = words[i].shape
    if FIND_OPTION[shape] or shape:find("^%-O%d*$") then
      i = i + 1
    elseif shape == "-D" then
      i = i + 2
    elseif shape:find("^[-(!,]") then
      return out
    else
      out[#out + 1] = words[i]
      i = i + 1
    end
  end
  return out
end

-- `{}` stands for what lies below the start points.
local function found_words(words, points)
  for i, word in ipairs(words) do
    if word.shape:find("{}", 1, true) then
      local one = word_values.unknown()
      one.shape, one.places = word.shape, points
      words[i] = one
    end
  end
  return words
end

local function peel_find(state, command, words, more, options)
  local points = M.start_points(words)
  local i = 2
  while i <= #words do
    if options[words[i].text or ""] then
      local last = i + 1
      while words[last] and words[last].text ~= ";" and words[last].text ~= "+" do
        last = last + 1
      end
      local inner = table.move(words, i + 1, last - 1, 1, {})
      if #inner > 0 then
        peel_inner(state, command, found_words(inner, points), more,
          words[i].text:find("dir", 1, true) ~= nil)
      end
      i = last
    end
    i = i + 1
  end
end

local function trap_text(words)
  local first = words[2]
  return first and first.text ~= "-" and first.text ~= "--" and first.text
    or words[3] and words[3].text
end

-- Any words ------------------------------------------------------------------------------------

local function find_files(state, command, words, more)
  peel_find(state, command, words, more, EXEC)
end

local function fd_files(state, command, words, more)
  peel_find(state, command, words, more, FD_EXEC)
end

local OF_PROGRAM <const> = {
  find = find_files, fd = fd_files, fdfind = fd_files,
  eval = function(state, command, words)
    if words[2] then inner_text(state, joined_text(words, 2), command) end
  end,
  trap = function(state, command, words)
    if words[2] then inner_text(state, trap_text(words), command) end
  end,
}

---Adds the command that the words are, and those that it runs.
---@param state table
---@param words table[]  the program first
---@param more table  as for make
---@return table? command  the outermost
function peel(state, words, more)
  if words[1] == nil or state.work > WORK_MAX then return nil end
  local command = make_command(state, words, more)
  local program = command.program
  if not program then
    -- `$x rm y`, `*(N) rm y`: a first word that comes to nothing makes the next one the command.
    if words[1].fixed == "" then peel(state, table.move(words, 2, #words, 1, {}), more) end
  elseif OF_PROGRAM[program] then
    OF_PROGRAM[program](state, command, words, more)
  elseif is_wrapper(program) then
    peel_wrapper(state, command, words, more)
  end
  return command
end
M.peel = peel


return M
