-- How a line gets from efrd to the hidden shell: files in the shell's own directory.
--
-- Owns: the file "run" (nonce, kind, path, launcher, trusted words; one a line), the files of lines
-- that belong to no call, and the one line that is typed. Must not know: the terminal, when the
-- shell reads them.
-- Loop thread of efrd.
--
-- Whoever takes "run" away owns the run: the integration renames it to "taken", efrd removes it.

local M = {}

local PRIVATE_FILE <const> = 384

---What is typed for every run.
M.FIXED_LINE = '\\builtin eval "$_efrh_text"\n'

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
  if launch == "contained" then return "contained", call.dir end
  if opts.apply then
    local path, err = self:_write("apply", opts.apply)
    return path and "apply", path or err
  end
  if call and call.line_path then return "direct", call.line_path end
  local path, err = self:_write("line", opts.line)
  return path and "direct", path or err
end

---Offer a run to the shell.
---@param launch "direct"|"contained"
---@param opts {call: table?, line: string?, apply: string?, trusted: string[]?}
---@return string? nonce
---@return string? err
function Handoff:put(launch, opts)
  local kind, path = self:_source(launch, opts)
  if not kind then return nil, path end
  local call = opts.call
  local nonce = call and call.nonce or hex(self._ports.sys.random(16))
  local launcher = kind == "contained" and call.launcher or ""
  local fields = { nonce, kind, path, launcher, table.concat(opts.trusted or {}, " ") }
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

---For a new shell: nothing of the one before.
function Handoff:clear()
  self._ports.fs.unlink(self._dir .. "/run")
  self._ports.fs.unlink(self._dir .. "/taken")
end

return M
