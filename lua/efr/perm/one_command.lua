-- Owns: the one-command rule: what may stand beside a command that must run outside the sandbox.
-- Must not know: why it must run outside.
-- Runs in efrd and efr. Pure.
--
-- Policy: the line must be read strictly, but for redirections to files, which are declared. At
-- most one command is other than a reader or one that makes sudo forget its credentials.

local list = require "efr.util.list"
local read_only = require "efr.perm.read_only"
local strict = require "efr.perm.strict"

local M = {}

local FORGETS <const> = list.set { "-k", "-K", "--reset-timestamp" }
local WRITES_FILE <const> = list.set { ">", ">>", ">|", ">!", ">>|", ">>!", "&>", "&>>", ">&" }

local function is_forgetting(command)
  local words = command.words
  return #words == 2 and words[1].text == "sudo" and FORGETS[words[2].text] == true
end

-- The kinds that the strict reading knows, with where their nodes stand.
local INNER <const> = { list = "items", sublist = "parts", pipeline = "commands" }

-- The same nodes without their redirections to files.
local function without_files(node)
  local copy = setmetatable({}, { __index = node })
  if node.kind == "simple" then
    copy.redirs = list.filter(node.redirs, function(redir)
      return not (WRITES_FILE[redir.op] and redir.target and not redir.heredoc)
    end)
    return copy
  end
  local inner = INNER[node.kind]
  if inner then copy[inner] = list.map(node[inner], without_files) end
  return copy
end

---Whether a line may run outside of the sandbox as it is.
---@param line efr.perm.Line
---@param facts table
---@return boolean ok
---@return string? why
function M.check(line, facts)
  if not line.ast then return false, "the line cannot be read" end
  local commands, construct = line.commands, nil
  if not commands then commands, construct = strict.commands(without_files(line.ast)) end
  if not commands then return false, "the line holds a construct: " .. construct end
  local others = 0
  for _, command in ipairs(commands) do
    if not is_forgetting(command) and not read_only.row(command, facts) then others = others + 1 end
  end
  if others > 1 then return false, "split it into single calls" end
  return true
end

return M
