-- The environment that a hidden zsh starts with (ux.md 8.2).
--
-- Owns: what is taken from efrd's own small environment, and what is set. Must not know: PTYs,
-- conversations. Pure. Loop thread of efrd.

local M = {}

local REMOVED <const> = {
  COLUMNS = true, LINES = true, SHLVL = true, OLDPWD = true, _ = true, ZDOTDIR = true,
  TERM_PROGRAM = true, TERM_PROGRAM_VERSION = true, TERMINFO = true, COLORFGBG = true,
  WINDOWID = true, VTE_VERSION = true, TMUX = true, TMUX_PANE = true, STY = true, ZELLIJ = true,
  LISTEN_PID = true, LISTEN_FDS = true, LISTEN_FDNAMES = true, NOTIFY_SOCKET = true,
  WATCHDOG_PID = true, WATCHDOG_USEC = true, INVOCATION_ID = true, JOURNAL_STREAM = true,
  SYSTEMD_EXEC_PID = true, MANAGERPID = true, MEMORY_PRESSURE_WATCH = true,
  MEMORY_PRESSURE_WRITE = true, CREDENTIALS_DIRECTORY = true, RUNTIME_DIRECTORY = true,
  STATE_DIRECTORY = true, CACHE_DIRECTORY = true, LOGS_DIRECTORY = true,
  CONFIGURATION_DIRECTORY = true, MAINPID = true,
}

local REMOVED_PREFIXES <const> = {
  "EFR_", "_EFR_", "_EFRH_", "GHOSTTY_", "KITTY_", "WEZTERM_", "ITERM_", "KONSOLE_", "ZELLIJ_",
}

local PAGERS <const> =
  { "PAGER", "GIT_PAGER", "SYSTEMD_PAGER", "MANPAGER", "GH_PAGER", "BAT_PAGER" }
local EDITORS <const> =
  { "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "SUDO_EDITOR", "SYSTEMD_EDITOR" }

local function is_removed(name)
  if REMOVED[name] then return true end
  for _, prefix in ipairs(REMOVED_PREFIXES) do
    if name:sub(1, #prefix) == prefix then return true end
  end
  return false
end

---@class efr.shell.EnvOptions
---@field environ table<string, string>  efrd's own environment
---@field user {name: string, home: string, shell: string}
---@field assets string  directory of the integration
---@field control string  the shell's own directory
---@field cwd string
---@field scratch string?  $SCRATCH of the conversation

---@param opts efr.shell.EnvOptions
---@return string[]  "NAME=value", sorted
function M.build(opts)
  local vars = {}
  for name, value in pairs(opts.environ) do
    if not is_removed(name) then vars[name] = value end
  end
  vars.HOME = vars.HOME or opts.user.home
  vars.USER = vars.USER or opts.user.name
  vars.LOGNAME = vars.LOGNAME or opts.user.name
  vars.SHELL = vars.SHELL or opts.user.shell
  vars.PATH = vars.PATH or "/usr/local/bin:/usr/bin:/bin"
  vars.TERM, vars.COLORTERM = "xterm-256color", "truecolor"
  vars.PWD, vars.EFR_HIDDEN_SHELL = opts.cwd, "1"
  vars.SCRATCH = opts.scratch
  for _, name in ipairs(PAGERS) do vars[name] = "cat" end
  vars.AWS_PAGER = ""
  for _, name in ipairs(EDITORS) do vars[name] = opts.assets .. "/editor" end
  -- The shim gives the user's own ZDOTDIR back.
  vars.ZDOTDIR, vars._EFRH_DIR = opts.assets, opts.control
  vars._EFRH_ZDOTDIR = opts.environ.ZDOTDIR
  local list = {}
  for name, value in pairs(vars) do list[#list + 1] = name .. "=" .. value end
  table.sort(list)
  return list
end

return M
