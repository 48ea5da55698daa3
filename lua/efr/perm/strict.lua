-- Owns: the strict reading of a line: its simple commands for command rules, network rules and the
-- one-command rule.
-- Must not know: rules, rows, paths.
-- Runs in efrd, on the loop thread. Pure, and linear in the line.
--
-- strict.commands(ast) -> {command...} | nil, construct
--   command  {words = {field...}, privileged?, moved?, node}
--     words[i]    {text, glob?}, as efr.perm.matching takes them, or a plain word of the AST;
--                 assignments are dropped
--     privileged  the program, or one behind a wrapper, runs as another user
--     moved       `cd` or the like stands earlier in the line
--   construct  why the line is opaque, one word or two: "expansion", "redirection", ...
--
-- Policy: only what is named here is accepted: simple commands joined by ; newline && || | |&,
-- plain words and quoted ones, redirections to /dev/null and of descriptors, and input from files.
-- Everything else makes the whole line opaque; then no rule but one for `any` matches.

local fields = require "efr.perm.fields"
local names = require "efr.perm.data.shell_words"

local M = {}

local find, match, unpack = string.find, string.match, table.unpack
local privileged <const>, wrappers <const> = names.privileged, names.wrappers
local opaque_builtins <const> = names.opaque_builtins
local directory_changers <const> = names.directory_changers

-- Words of one line.
local WORK_MAX <const> = 8192

local function base_name(text)
  return find(text, "/", 1, true) and match(text, "[^/]*$") or text
end

---Whether a command (its fields) runs as another user.
---@param words table[]
---@return boolean
function M.is_privileged(words)
  local first = words[1]
  if not first or not first.text then return false end
  local name = base_name(first.text)
  if privileged[name] then return true end
  if not wrappers[name] then return false end
  for i = 2, #words do
    local text = words[i].text
    if text and privileged[base_name(text)] then return true end
  end
  return false
end

-- Assignments and redirections -----------------------------------------------------------------

---Whether an assignment before a command is harmless. Its value has to be plain text.
---@param assign table
---@return boolean
function M.is_harmless_assignment(assign)
  local name = assign.name
  if assign.op ~= "=" or assign.subscript or not assign.value then return false end
  if not names.harmless_names[name] and not name:find("^LC_%u+$") then return false end
  local field = fields.strict(assign.value)
  if not field or field.glob then return false end
  local text = field.text
  if names.numeric_names[name] then return text:find("^%d*$") ~= nil end
  -- A path as a language makes the C library load catalogs and formats from there, which can run
  -- code; a path as a time zone opens any file.
  if name == "TZ" then
    return text:find("^[%w%-_./:,+]*$") ~= nil and not text:find("^[/:.]")
      and not text:find("..", 1, true)
  end
  return text:find("^[%w%-_.:,+@%%=]*$") ~= nil and not text:find("^%.")
end

local OUTPUT <const> = {
  [">"] = true, [">>"] = true, [">|"] = true, ["&>"] = true, ["&>>"] = true, [">&"] = true,
}

-- `2>&1`, `<&0`: copies of a descriptor by number. From 10 on they are the shell's own.
local function is_copy(redir, text)
  return (redir.op == ">&" or redir.op == "<&") and text:find("^%d$") ~= nil
end

---Whether a redirection writes nothing. `text`: its target, nil when it cannot be known.
---@param redir table
---@param text string?
---@return boolean? ok
---@return string? construct
function M.redirection(redir, text)
  if type(redir.fd) == "string" and not redir.fd:find("^%d+$") then return nil, "redirection" end
  if not text or text == "" then return nil, "redirection" end
  if redir.op == "<" then return true end
  if is_copy(redir, text) then return true end
  if OUTPUT[redir.op] and text == "/dev/null" then return true end
  return nil, "redirection"
end

local function strict_redirection(redir)
  if redir.heredoc or redir.op == "<<<" then return nil, "here-document" end
  if not redir.target then return nil, "syntax" end
  local field, construct = fields.strict(redir.target)
  if not field then return nil, construct end
  if field.glob then return nil, "glob" end
  return M.redirection(redir, field.text)
end

-- Commands --------------------------------------------------------------------------------------

-- The words of a command, as fields. Those of a plain one are fields as they stand.
local function fields_of(node)
  -- A copy has its size from the start.
  local words = { unpack(node.words) }
  for i = 1, #words do
    local field, construct = fields.strict(words[i])
    if not field then return nil, construct end
    words[i] = field
  end
  return words
end

local function refused(node)
  for _, assign in ipairs(node.assigns) do
    if not M.is_harmless_assignment(assign) then return "assignment" end
  end
  for _, redir in ipairs(node.redirs) do
    local ok, construct = strict_redirection(redir)
    if not ok then return construct end
  end
  if #node.words == 0 then return #node.assigns > 0 and "assignment" or "empty" end
  return nil
end

local function simple(state, node)
  local words = node.words
  state.work = state.work + #words
  if state.work > WORK_MAX then return nil, "length" end
  if not node.plain then
    local construct = refused(node)
    if construct then return nil, construct end
    words, construct = fields_of(node)
    if not words then return nil, construct end
  end
  local first = words[1].text
  if opaque_builtins[first] then return nil, "builtin" end
  local out = state.out
  out[#out + 1] = {
    words = words, node = node, moved = state.moved or nil,
    privileged = M.is_privileged(words) or nil,
  }
  if directory_changers[first] then state.moved = true end
  return true
end

local READERS = { simple = simple }

local function read(state, node)
  local reader = READERS[node.kind]
  if not reader then return nil, node.kind == "unknown" and "syntax" or "grouping" end
  return reader(state, node)
end

local function read_all(state, nodes)
  for i = 1, #nodes do
    local ok, construct = read(state, nodes[i])
    if not ok then return nil, construct end
  end
  return true
end

function READERS.list(state, node)
  if next(node.async or {}) then return nil, "background" end
  return read_all(state, node.items)
end

function READERS.sublist(state, node)
  return read_all(state, node.parts)
end

function READERS.pipeline(state, node)
  if node.negated then return nil, "history" end
  if node.coproc or node.timed then return nil, "builtin" end
  return read_all(state, node.commands)
end

---The simple commands of a line.
---@param ast table
---@return table[]? commands
---@return string? construct
function M.commands(ast)
  if ast.comments then return nil, "character" end
  local state = { out = {}, moved = false, work = 0 }
  local ok, construct = read(state, ast)
  if not ok then return nil, construct end
  if #state.out == 0 then return nil, "empty" end
  return state.out
end

-- Opaque lines ---------------------------------------------------------------------------------

---Whether a line that cannot be read names a program that runs as another user.
---@param line string
---@return boolean
function M.names_privileged(line)
  for word in line:gmatch("[%w%-_./]+") do
    if privileged[base_name(word)] then return true end
  end
  return false
end

return M
