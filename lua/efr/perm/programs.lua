-- Owns: the table of programs: one record a program, merged from the files below programs/.
-- Must not know: how a line is read, or what the knowledge is used for.
-- Runs in efrd, on the loop thread. Pure.
--
-- A program without a record reads every operand. Every key only adds reads, writes, network or
-- interaction:
--   operands      "read" (default), "none", "write", "write_later" (all but the first), "tree",
--                 "last_output" (the second operand is written)
--   tree          "always", or the options that make it read trees: {short, long, valued}
--   default_tree  with such an option and no operand it reads the tree of the directory
--   default_read  without an operand it reads the directory
--   pattern       the first operand is no path, unless one of these options stands there
--   flags, values, long_flags, long_values   every option it knows; another one makes the words
--                 uncertain: all operands are paths, and the directory is read too
--   outputs       options whose value is written: {short, long}
--   reads         options whose value is read, also where it stands in the word of the option
--   outputs_named `name=value` operands that are written
--   in_place, in_place_long  the option with which it writes its operands
--   anywhere      options whose value names a list of paths: everything may be read
--   moves         options that name a directory in which it works besides
--   trees         trees it reads besides
--   writes_cwd    it may write the directory
--   dot_files     options with which a tree reader prints contents of dot files, too
--   recursive     the same for a program whose operands are trees
--   names_only    it prints names of files, not what they hold
--   special       a function of line_paths of that name
--   network       "always", or the name of a rule of heuristics
--   interactive   it may wait at the terminal
--   prompts       it may ask for a password

local network = require "efr.perm.programs.network"
local readers = require "efr.perm.programs.readers"
local writers = require "efr.perm.programs.writers"

local M = {}

local TABLE <const> = {}
for _, part in ipairs { readers, writers, network } do
  for name, record in pairs(part) do
    assert(not TABLE[name], name)
    TABLE[name] = record
  end
end

local NOTHING <const> = {}

---The record of a program.
---@param name string?  without a directory
---@return table record  empty for one efr does not know
function M.get(name)
  return name and TABLE[name] or NOTHING
end

---All names with a record.
---@return table<string, table>
function M.all()
  return TABLE
end

return M
