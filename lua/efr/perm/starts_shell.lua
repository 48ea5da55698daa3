-- Owns: which lines start a shell or an interpreter that stays and takes commands.
-- Must not know: rules, what such a program may do. Runs in efrd, on the loop thread. Pure.
--
-- Policy: what is typed at such a program is a command, not an answer, so nobody is asked to answer
-- it. A program too many costs an answer line; a script or a command in its words makes it none.

local lenient = require "efr.perm.lenient"
local shell = require "efr.perm.shell"

local M = {}

-- What makes a program end without taking commands: "operand" any word that is no option (a script,
-- a remote command), "second" a second one (`ssh host command`), or an option of the pattern.
local SHELL <const> = { stops = "operand", option = "^%-%a*c$" }
local INTERPRETER <const> = { stops = "operand", option = "^%-%a*[cmeEp]" }
local DATABASE <const> = { option = "^%-%-?[cefl]", long = "^%-%-[cefl]" }

local PROGRAMS <const> = {
  su = { option = "^%-%a*c$", long = "^%-%-command" }, login = {},
  ssh = { stops = "second" }, mosh = { stops = "second" }, telnet = {}, ftp = {}, sftp = {},
  psql = DATABASE, mysql = DATABASE, mariadb = DATABASE, mongosh = DATABASE,
  ["redis-cli"] = { stops = "operand" }, sqlite3 = { stops = "second" },
  gdb = { option = "^%-%-?batch" }, lldb = { option = "^%-%-?batch" },
}
for name in ("sh bash zsh dash ksh mksh fish tcsh csh rbash nu elvish xonsh pwsh"):gmatch("%S+") do
  PROGRAMS[name] = SHELL
end
for name in ("python python2 python3 ipython ipython3 pypy3 bpython node nodejs deno bun ruby irb "
  .. "pry perl lua lua5.1 lua5.3 lua5.4 luajit php R julia ghci ocaml utop scala clojure erl iex "
  .. "jshell tclsh wish guile racket sbcl octave bc dc"):gmatch("%S+") do
  PROGRAMS[name] = INTERPRETER
end

-- Options that take the next word, by the programs of which that matters here.
local WITH_VALUE <const> = {
  ssh = "^%-[BbcDEeFIiJLlmOopQRSWw]$", su = "^%-[gGsw]$", mosh = "^%-p$",
  zsh = "^[-+]o$", bash = "^[-+][oO]$", sh = "^[-+]o$", python3 = "^%-[WX]$", python = "^%-[WX]$",
}

local CONTAINERS <const> = { docker = true, podman = true, nerdctl = true, kubectl = true,
  ["docker-compose"] = true }

-- `docker exec -it c sh`, `docker run -ti image`: anything with a terminal and an open input.
local function is_open_container(words)
  local runs, input, terminal = false, false, false
  for i = 2, #words do
    local text = words[i].text or ""
    if text == "exec" or text == "run" or text == "attach" then runs = true end
    if text:find("^%-%a+$") then
      input, terminal = input or text:find("i", 1, true), terminal or text:find("t", 1, true)
    end
    if text == "--interactive" then input = true elseif text == "--tty" then terminal = true end
    if text == "attach" then input, terminal = true, true end
  end
  return runs and input and terminal
end

local function stays(program, entry, words)
  local operands, i = 0, 2
  local with_value = WITH_VALUE[program]
  while words[i] do
    local text = words[i].text or "x"
    if text == "-i" and entry.stops == "operand" then return true end
    if entry.option and text:find(entry.option) or entry.long and text:find(entry.long) then
      return false
    end
    if with_value and text:find(with_value) then
      i = i + 1
    elseif not text:find("^[-+]") then
      operands = operands + 1
      if entry.stops == "operand" or entry.stops == "second" and operands == 2 then return false end
    end
    i = i + 1
  end
  return true
end

-- sudo and doas with nothing but options that ask for a shell.
local function is_root_shell(words)
  for i = 2, #words do
    local text = words[i].text or ""
    if text:find("^%-%a*[is]") or text == "--login" or text == "--shell" then return true end
    if not text:find("^%-") then return false end
  end
  return false
end

-- Whether the command reads its input from elsewhere than the terminal.
local function is_fed(command)
  if command.piped and command.piped.from then return true end
  for _, redir in ipairs(command.redirs or {}) do
    if redir.heredoc or redir.op and redir.op:find("^<") then return true end
  end
  return false
end

local function command_stays(command)
  local program, words = command.program, command.words
  if not program or is_fed(command) then return false end
  if program == "sudo" or program == "doas" then return is_root_shell(words) end
  if CONTAINERS[program] then return is_open_container(words) end
  local entry = PROGRAMS[program]
  return entry ~= nil and stays(program, entry, words)
end

---Whether a line starts a shell or an interpreter that stays, also behind sudo, env or timeout.
---@param line string
---@return boolean
function M.line(line)
  local ast = shell.parse(line)
  if not ast then return false end
  for _, command in ipairs(lenient.commands(ast)) do
    if command_stays(command) then return true end
  end
  return false
end

return M
