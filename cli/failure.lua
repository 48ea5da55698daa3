-- What a failure means for the person at the prompt: the exit code and the next step.
-- Owns: the table of ux.md 5.1. Must not know: the terminal, the wire. Pure; runs in `efr`.

local M = {}

M.OK = 0
M.FAILED = 1
M.USAGE = 2
M.NO_DAEMON = 3
M.INTERRUPTED = 130
M.PIPE = 141 -- as if SIGPIPE had ended efr, like other programs

local EXIT <const> = {
  EFR_USAGE = M.USAGE,
  EFR_NO_DAEMON = M.NO_DAEMON,
  EFR_SOCKET_PATH = M.NO_DAEMON,
  EFR_NO_START = M.NO_DAEMON,
  EFR_INTERRUPTED = M.INTERRUPTED,
}

local function log_hint(data)
  return data and data.log and "see " .. data.log or "see journalctl --user -u efrd"
end

local HINT <const> = {
  EFR_NO_DAEMON = function(data)
    -- What it printed says more than how to start it: it was started, and refused.
    if data and data.log_lines then return log_hint(data) end
    return "start it with: systemctl --user enable --now efrd.socket, or ./dev run"
  end,
  EFR_SOCKET_PATH = function()
    return "set EFR_RUNTIME_DIR or EFR_HOME to a shorter directory"
  end,
  EFR_NO_START = function()
    return "a command inside a hidden shell or the sandbox never starts efrd"
  end,
  EFR_TIMEOUT = log_hint,
  EFR_LOST = log_hint,
  EFR_FOREIGN_ROOT = function()
    return "under sudo set HOME to your own home (sudo -H), or set EFR_HOME"
  end,
  EFR_ROOTS = function()
    return "set EFR_HOME, or the directory's own variable, to an absolute path"
  end,
  protocol_mismatch = function()
    return "install efr and efrd from one build, then restart efrd"
  end,
}

--- The exit code of an error code.
function M.exit(code)
  return EXIT[code] or M.FAILED
end

--- The next step for an error code; nil when there is none.
--- @param code string?
--- @param data table? what came with the error; `hint` in it wins
function M.hint(code, data)
  if data and data.hint then
    return data.hint
  end
  local hint = code and HINT[code]
  return hint and hint(data)
end

--- The next step after a turn that failed.
--- @param err {code: string, data: table?} of turn_failed
--- @param provider string? the configured provider
function M.turn_hint(err, provider)
  if err.code == "unauthorized" then
    return "log in with: efr login " .. (provider or "openai-compatible")
  end
  local data = type(err.data) == "table" and err.data or {}
  if err.code == "invalid" and (data.setting == "model" or data.model) then
    return "choose another model with ,model MODEL or name in [model] of config.toml"
  end
  return nil
end

return M
