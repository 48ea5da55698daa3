-- How a line gets from efrd to the hidden shell: files in the shell's own directory.
--
-- Owns: the file "run" (nonce, kind, path, launcher, trusted words, "=" and the PATH that the line
-- was decided with, when sudo forgets, "=" and git's variables that it was decided with; one a
-- line), the files of lines that belong to no call, the files "path" and "git" in which the shell
-- says its PATH and git's variables, and the one line that is typed. Must not know: the
-- terminal, when the shell reads them.
-- Loop thread of efrd.
--
-- Whoever takes "run" away owns the run: the integration renames it to "taken", efrd removes it.

local M = {}

local PRIVATE_FILE <const> = 384
local SEARCH_PATH_MAX <const> = 64 * 1024

---What is typed for every run.
M.FIXED_LINE = '\\builtin eval "$_efrh_text"\n'

---Directory and variables as data that the integration reads field by field.
---@param cwd string?
---@param exports table<string, string>?
---@return string  empty: there is nothing to set
function M.apply_text(cwd, exports)
  local fields = {}
  if cwd then fields[1] = "cwd\0" .. cwd .. "\0" end
  for name, value in pairs(exports or {}) do
    fields[#fields + 1] = "export\0" .. name .. "\0" .. value .. "\0"
  end
  table.sort(fields)
  return table.concat(fields)
end

---@class efr.shell.Handoff
local Handoff = {}
Handoff.__index = Handoff

---@param ports table  fs, sys, uv
---@param dir string
---@return efr.shell.Handoff
function M.new(ports, dir)
  return setmetatable({ _ports = ports, _dir = dir }, Handoff)
end

-- Without fsync: the file lives as long as the shell.
function Handoff:_write(name, bytes)
  local uv, path = self._ports.uv, self._dir .. "/" .. name
  local fd, err = uv.fs_open(path, "w", PRIVATE_FILE)
  if not fd then return nil, err end
  local written
  written, err = uv.fs_write(fd, bytes)
  uv.fs_close(fd)
  if written ~= #bytes then return nil, err or (path .. ": short write") end
  return path
end

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Kind of the run and the path that goes with it.
function Handoff:_source(launch, opts)
  local call = opts.call
  if launch ~= "direct" then return launch, call.dir end
  if opts.apply then
    local path, err = self:_write("apply", opts.apply)
    return path and "apply", path or err
  end
  if call and call.line_path then return "direct", call.line_path end
  local path, err = self:_write("line", opts.line)
  return path and "direct", path or err
end

local function fields_of(first, opts)
  return { first[1], first[2], first[3], first[4], table.concat(opts.trusted or {}, " "),
    opts.search_path and "=" .. opts.search_path or "", opts.forget_sudo or "",
    opts.git_env and "=" .. opts.git_env.told or "" }
end

---Offer a run to the shell.
---@param launch "direct"|"contained"|"outside"
---@param opts {call: table?, line: string?, apply: string?, trusted: string[]?,
---  search_path: string?, git_env: efr.shell.GitEnvironment?, forget_sudo: string?}
---@return string? nonce
---@return string? err
function Handoff:put(launch, opts)
  local kind, path = self:_source(launch, opts)
  if not kind then return nil, path end
  local call = opts.call
  local nonce = call and call.nonce or hex(self._ports.sys.random(16))
  local launcher = launch ~= "direct" and call.launcher or ""
  local fields = fields_of({ nonce, kind, path, launcher }, opts)
  for _, field in ipairs(fields) do
    if field:find("[\0\n]") then return nil, "a path of the call holds a newline" end
  end
  -- Whole at once: the shell could take it at any moment.
  local new, err = self:_write("run.new", table.concat(fields, "\n") .. "\n")
  if not new then return nil, err end
  local ok
  ok, err = self._ports.fs.rename(new, self._dir .. "/run")
  return ok and nonce, err
end

---Take a run back. False: the shell has it, and will end it with D.
---@return boolean
function Handoff:take_back()
  return self._ports.fs.unlink(self._dir .. "/run") and true or false
end

---The PATH of the shell, as it was at its last prompt; nil when it is not known.
---@return string?
function Handoff:search_path()
  local text = self._ports.fs.read_file(self._dir .. "/path", SEARCH_PATH_MAX)
  if not text or text == "" or text:find("[\0\n]") then return nil end
  return text
end

---@class efr.shell.GitEnvironment
---@field values table<string, string>  by name, of those that are exported
---@field told string  as the shell said it

---The variables of the shell that git reads (GIT_*, HOME, XDG_CONFIG_HOME), as they were at its
---last prompt; nil when they are not known. Control characters in values are the byte 1.
---@return efr.shell.GitEnvironment?
function Handoff:git_environment()
  local text = self._ports.fs.read_file(self._dir .. "/git", SEARCH_PATH_MAX)
  if not text or text:sub(-1) ~= "." or text:find("[\0\n]") then return nil end
  local out = {}
  for name, value in text:gmatch("([%w_]+)=([^\31]*)\31") do out[name] = value end
  return { values = out, told = text }
end

---Whether a run is offered that the shell has not taken.
---@return boolean
function Handoff:is_open()
  return self._ports.fs.stat(self._dir .. "/run") ~= nil
end

---For a new shell: nothing of the one before.
function Handoff:clear()
  self:_write("path", "")
  self:_write("git", "")
  self._ports.fs.unlink(self._dir .. "/run")
  self._ports.fs.unlink(self._dir .. "/taken")
end

return M
