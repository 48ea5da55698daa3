-- The user's editor in the foreground of this terminal.
-- Owns: which one, its start and its end. Must not know: what is edited.
-- Runs in `efr`; run waits.

local async = require "efr.util.async"

local M = {}

local SHELL <const> = "/bin/sh"

local function given(value)
  return value and value:find("%S") and value or nil
end

--- The words of $VISUAL or $EDITOR, else vi.
function M.command(environ)
  return given(environ.VISUAL) or given(environ.EDITOR) or "vi"
end

local function environment(environ)
  local out = {}
  for name, value in pairs(environ) do
    out[#out + 1] = name .. "=" .. value
  end
  table.sort(out)
  return out
end

-- Ctrl+C and Ctrl+\ are the editor's while it runs.
local function hold_signals(uv)
  local handles = {}
  for i, name in ipairs({ "sigint", "sigquit" }) do
    handles[i] = assert(uv.new_signal())
    handles[i]:start(name, function() end)
  end
  return function()
    for _, handle in ipairs(handles) do
      handle:close()
    end
  end
end

--- Runs the editor on a file and waits for its end.
--- @param env table
--- @param path string
--- @return true? ok, string? message
function M.run(env, path)
  local ports, command = env.ports, M.command(env.environ)
  local release = hold_signals(ports.uv)
  local status, message = async.await(function(resume)
    local child, err = ports.proc.spawn({
      path = SHELL,
      argv = { "sh", "-c", command .. ' "$@"', "sh", path },
      env = environment(env.environ),
      fds = { [0] = 0, [1] = 1, [2] = 2 },
      on_exit = function(code, signal)
        resume(signal ~= 0 and 128 + signal or code)
      end,
    })
    if not child then
      resume(nil, err)
    end
  end)
  release()
  if not status then
    return nil, message
  elseif status ~= 0 then
    return nil, ("the editor (%s) ended with status %d"):format(command, status)
  end
  return true
end

return M
