-- The user's Lua rules in `efr`, without a daemon: a client of its own, and questions on lines.
-- Owns: where the files and the program lie. Must not know: what an answer changes.
-- Loop thread of `efr`; open waits in a task.

local apply = require "efr.rules.apply"
local client = require "efr.rules.client"
local conn = require "efr.cli.conn"
local perm_line = require "efr.perm.line"

local M = {}

local function quiet() end

--- A rules client that has read nothing yet; close it. It keeps no version.
--- @return table? rules, string? message, string? code
function M.new(env)
  local roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local exe
  exe, message, code = env.ports.sys.exe_path()
  if not exe then
    return nil, message, code
  end
  return client.new({
    ports = env.ports, efrd = (exe:gsub("[^/]*$", "efrd")), dir = roots.config.path,
    good = roots.state.path .. "/rules/good", keep = false,
    log = { error = quiet, warn = quiet, info = quiet },
  })
end

--- A client that has read the files as the daemon would.
--- @return table? rules, string? message, string? code
function M.open(env)
  local rules, message, code = M.new(env)
  if rules then
    rules:reload()
  end
  return rules, message, code
end

--- Asks about a line.
--- @param rules table
--- @param line table of perm.line
--- @param asked {requirements: table[], exits: table[]?}
--- @param facts table cwd, mode, tool, origin, project, scratch, home
--- @return table? answer, table question
function M.ask(rules, line, asked, facts)
  local question = apply.question({
    requirements = asked.requirements, exits = asked.exits, line = line,
    found = perm_line.found(line),
  }, facts)
  return rules:judge(question), question
end

return M
