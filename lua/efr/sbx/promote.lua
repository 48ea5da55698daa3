-- Owns: which exports of a contained call may reach the hidden shell, which is trusted.
-- Must not know: files (asked through a function) or how the shell takes them over.
-- Runs in efrd. Pure but for that function.
--
-- Policy: every byte was chosen inside the sandbox. Few names pass, none that programs, loaders or
-- tools act on; no name that looks secret; and no value that could point the trusted shell at a
-- place that a contained call can write. Relative paths mean a place only to the call, so they
-- stay too.

local environment = require "efr.sbx.environment"

local M = {}

local MAX_NAME <const> = 128
local MAX_VALUE <const> = 4096

-- Never kept nor promoted: the next call sets them itself, or they would break its child shell.
M.DROPPED = {
  "LD_*", "BASH_ENV", "ENV", "ZDOTDIR", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "EFR_*", "_EFR_*",
  "*_proxy", "*_PROXY", "NO_PROXY", "no_proxy",
}
-- The default of sandbox.promote_env.
M.PROMOTE = {
  "RUST_LOG", "RUST_BACKTRACE", "NODE_ENV", "DEBUG", "CI", "NO_COLOR", "FORCE_COLOR", "TZ",
  "LANG", "LC_*",
}
-- Never promoted, whatever the setting says.
M.NEVER = {
  "PATH", "MANPATH", "FPATH", "CDPATH", "HOME", "SHELL", "ZDOTDIR", "ENV", "BASH_ENV", "IFS",
  "PS0", "PS1", "PS2", "PS3", "PS4", "PS5", "PS6", "PS7", "PS8", "PS9", "PROMPT*", "RPROMPT*",
  "HISTFILE", "TMPDIR", "LD_*", "DYLD_*", "*_PRELOAD", "*_COMMAND", "GIT_*", "SSH_*", "GPG_*",
  "GNUPGHOME", "DBUS_*", "XDG_*", "*_proxy", "*_PROXY", "PYTHON*", "PERL5*", "RUBY*",
  "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "LOCPATH", "EDITOR", "VISUAL",
  "*_EDITOR", "*PAGER", "*ASKPASS*", "CARGO_*", "RUSTUP_*", "RUSTC*", "RUSTFLAGS",
  "RUSTDOCFLAGS", "CC", "CXX", "LD", "AR", "MAKEFLAGS", "GO*", "npm_config_*", "NPM_CONFIG_*",
  "PIP_*", "UV_*", "GEM_*", "BUNDLE_*", "KUBECONFIG", "DOCKER_*", "SUDO_*", "EFR_*", "_EFR_*",
  "NODE_*",
}
local EXCEPT <const> = { NODE_ENV = true }

---Whether a name is that of a shell variable.
---@param name string
---@return boolean
function M.is_variable(name)
  return #name <= MAX_NAME and name:match("^[%a_][%w_]*$") ~= nil
end

---@class efr.sbx.PromoteOptions
---@field promote string[]?  sandbox.promote_env
---@field deny string[]?  sandbox.export_deny
---@field is_own fun(part: string): boolean  whether a path (absolute, ~ or .) leads to a place that
---  contained calls can write

local function name_passes(name, opts)
  if environment.matches(M.DROPPED, name) or not M.is_variable(name) then return false end
  if environment.matches(M.NEVER, name) and not EXCEPT[name] then return false end
  return not environment.matches(opts.deny or {}, name)
    and environment.matches(opts.promote or M.PROMOTE, name)
    and not environment.matches(environment.SECRET, name, true)
end

local function value_passes(value, opts)
  if #value > MAX_VALUE or value:find("[\0-\8\10-\31\127]") then return false end
  for part in value:gmatch("[^:=%s]+") do
    if part:find("^[/~.]") then
      if opts.is_own(part) then return false end
    elseif part:find("/", 1, true) then
      return false
    end
  end
  return true
end

---The exports that may reach the hidden shell.
---@param list {kind: string, name: string, value: string?}[]
---@param opts efr.sbx.PromoteOptions
---@return table<string, string>
function M.exports(list, opts)
  local out = {}
  for _, record in ipairs(list) do
    local passes = record.kind == "export" and name_passes(record.name, opts)
      and value_passes(record.value, opts)
    if record.kind == "export" or record.kind == "unset" then
      out[record.name] = passes and record.value or nil
    end
  end
  return out
end

return M
