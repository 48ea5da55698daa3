-- Owns: what a tool call can declare before it runs, and the check that a declaration is well
-- formed.
-- Must not know: effects, rules or modes.
-- Runs in efrd, on the loop thread. Pure.
--
-- A declaration is a list of plain tables, so that a tool can write it down without requiring this
-- module (tools never reach the permission code). Create, delete and chmod count as write.

local needs = require "efr.perm.needs"
local validate = require "efr.util.validate"

local M = {}

local PATH <const> = { type = "string", min = 1 }

local KINDS <const> = {
  read = { path = PATH, tree = { type = "boolean", optional = true } },
  write = { path = PATH },
  line = { text = { type = "string" }, cwd = PATH },
  network = {},
  interactive = {},
  nested_shell = {},
  destructive = {},
  may_prompt = {},
  background = {},
  settings = { summary = { type = "string" }, loosens = { type = "boolean", optional = true } },
  needs = { needs = { type = "any" } },
}

-- What a schema cannot say of a kind.
local EXTRA <const> = {
  needs = function(item) return needs.check(item.needs) end,
}

---The call reads a path; with tree also everything under it.
---@param path string
---@param opts { tree: boolean? }?
---@return table requirement
function M.read(path, opts)
  return { kind = "read", path = path, tree = opts and opts.tree or nil }
end

---The call writes, creates, deletes or changes a path.
---@param path string
---@return table requirement
function M.write(path)
  return { kind = "write", path = path }
end

---The call runs a command line.
---@param text string
---@param cwd string  the directory in which the line starts
---@return table requirement
function M.line(text, cwd)
  return { kind = "line", text = text, cwd = cwd }
end

---The call talks to the network.
---@return table requirement
function M.network()
  return { kind = "network" }
end

---The call may wait for somebody at the terminal.
---@return table requirement
function M.interactive()
  return { kind = "interactive" }
end

---The call starts a shell that stays.
---@return table requirement
function M.nested_shell()
  return { kind = "nested_shell" }
end

---The call deletes or moves files of the user.
---@return table requirement
function M.destructive()
  return { kind = "destructive" }
end

---The call may ask for a password or a host key, as ssh does. It decides nothing by itself.
---@return table requirement
function M.may_prompt()
  return { kind = "may_prompt" }
end

---The call goes on in the background.
---@return table requirement
function M.background()
  return { kind = "background" }
end

---The call changes efr's settings.
---@param summary string  one line for the question
---@param loosens boolean?  whether more would run without a question afterwards
---@return table requirement
function M.settings(summary, loosens)
  return { kind = "settings", summary = summary, loosens = loosens }
end

---What the model says that the call needs outside of the sandbox.
---@param wanted table  see perm.needs
---@return table requirement
function M.needs(wanted)
  return { kind = "needs", needs = wanted }
end

---Checks a declaration.
---@param list table[]
---@return boolean? ok
---@return string? err
function M.check(list)
  if type(list) ~= "table" then return nil, "the requirements are no list" end
  -- A list has as many keys as its length, and a value at each place.
  local keys = 0
  for _ in pairs(list) do keys = keys + 1 end
  if keys ~= #list then return nil, "the requirements are no list" end
  for i = 1, #list do
    local item = list[i]
    local schema = type(item) == "table" and KINDS[item.kind]
    if not schema then return nil, ("requirement %d has no known kind"):format(i) end
    local ok, err = validate.check(schema, item)
    if ok and EXTRA[item.kind] then ok, err = EXTRA[item.kind](item) end
    if not ok then return nil, ("requirement %d (%s): %s"):format(i, item.kind, err) end
  end
  return true
end

return M
