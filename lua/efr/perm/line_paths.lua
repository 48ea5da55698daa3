-- Owns: what a line reads and writes, as far as its words tell.
-- Must not know: the disk (the caller resolves links), rules, exits.
-- Runs in efrd, on the loop thread. Pure, and linear in the line: bases, paths and their length
-- have limits, behind which a path may be anywhere.
--
-- line_paths.declare(ast, ctx) -> paths, flags
--   ctx    {cwd, home, commands?}: absolute; commands: what lenient.commands(ast) gave, if known
--   paths  {{kind = "read"|"write", path, tree?, contents?, below?, unknown?, why}...}, which are
--          requirements (efr.perm.requirements)
--     path     absolute, as the line names it (`..` still in it, so that links can be resolved)
--     tree     a read of everything below
--     below    a write of what lies in this directory, not of the directory itself
--     contents for a tree: what its dot files hold may be printed (masked files ask then, rule 1a)
--     unknown  the place is not known: path is "/". A write like this is no named target.
--     why      the program, "redirection", "cd" or "unread"
--   flags  {network?, interactive?, may_prompt?}
-- line_paths.opaque(line) -> paths, flags for a line that cannot be read
-- line_paths.git_places(ast, ctx) -> {dir...} | nil: where git commands of the line may run
--
-- Policy: every path found can only make a decision stricter, so what is not known may be anything:
-- an operand is a read, a relative path behind an unknown `cd` is anywhere, and so is a path below
-- something that the line itself copied, moved or linked before.

local heuristics = require "efr.perm.heuristics"
local lenient = require "efr.perm.lenient"
local line_programs = require "efr.perm.line_programs"
local names = require "efr.perm.data.shell_words"
local Places = require "efr.perm.places"

local M = {}

local directory_changers <const> = names.directory_changers

-- Redirections ----------------------------------------------------------------------------------

local function redirections(places, command)
  for _, redir in ipairs(command.redirs) do
    local target = redir.target
    if redir.write then
      if target.text ~= "/dev/null" then places:write(target, "redirection") end
      if redir.op == "<>" then places:read(target, "redirection") end
    elseif redir.op == "<" and target.text ~= "/dev/null" then
      places:read(target, "redirection")
    end
  end
end

-- cd --------------------------------------------------------------------------------------------

local function change_directory(places, command)
  local operands = {}
  for i = 2, #command.words do
    local word = command.words[i]
    if not word.shape:find("^%-[%a]") and word.shape ~= "--" then
      operands[#operands + 1] = word
    end
  end
  local first = operands[1]
  local unknown = #operands > 1 or command.program == "popd"
    or (first and first.shape:find("^[-+]"))
    or (not first and command.program == "pushd")
  if unknown then return places:lose() end
  if not first then return places:move_home() end
  places:read(first, "cd")
  places:move(first)
end

-- The line --------------------------------------------------------------------------------------

local function walk(ast, ctx, each)
  local places = Places.new(ctx)
  local commands = ctx.commands or lenient.commands(ast)
  for i = 1, #commands do
    local command = commands[i]
    places:enter(command)
    if each then each(command, places) end
    if command.redirs[1] then redirections(places, command) end
    if command.unread then
      places:anywhere("read", "unread")
    elseif directory_changers[command.program or ""] and #command.wrappers == 0 then
      change_directory(places, command)
    elseif command.words[1] then
      line_programs.declare(places, command)
    end
    places:leave()
  end
  return places, commands
end

---What a line reads and writes, and what else it may do.
---@param ast table
---@param ctx { cwd: string, home: string, commands: table[]? }
---@return table[] paths
---@return table flags
function M.declare(ast, ctx)
  local places, commands = walk(ast, ctx)
  return places.paths, heuristics.flags(commands)
end

---The same for a line that cannot be read.
---@param line string
---@return table[] paths
---@return table flags
function M.opaque(line)
  return { { kind = "read", path = "/", tree = true, unknown = true, why = "unread" } },
    heuristics.opaque(lenient.programs(line))
end

---The directories in which git commands of a line may run.
---@param ast table
---@param ctx { cwd: string, home: string, commands: table[]? }
---@return string[]? dirs  nil when one of them is not known
function M.git_places(ast, ctx)
  local dirs, seen, known = {}, {}, true
  walk(ast, ctx, function(command, places)
    if command.program ~= "git" then return end
    local bases = places:bases_now()
    if not bases then known = false end
    for _, dir in ipairs(bases or {}) do
      if not seen[dir] then
        seen[dir] = true
        dirs[#dirs + 1] = dir
      end
    end
  end)
  return known and dirs or nil
end

return M
