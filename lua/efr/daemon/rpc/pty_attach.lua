-- pty.attach: a hidden shell's terminal, as long as the client wants: its output, or with `screens`
-- pictures of its screen.
-- Main thread of efrd; each attachment is a task.
--
-- A size that came over this connection goes back to the usual one when its last attachment ends.
local hidden_shells = require "efr.daemon.hidden_shells"
local pty_stream = require "efr.daemon.pty_stream"

-- Counts the attachments of a connection to a terminal.
local function hold(session, pty_id)
  session.ptys = session.ptys or {}
  session.ptys[pty_id] = session.ptys[pty_id] or { count = 0 }
  local held = session.ptys[pty_id]
  held.count = held.count + 1
  return held
end

local function handler(_, session, params, stream, shell)
  local terminal = shell:terminal()
  local held = hold(session, params.pty_id)
  local _ <close> = setmetatable({}, { __close = function()
    held.count = held.count - 1
    if held.count > 0 then
      return
    end
    session.ptys[params.pty_id] = nil
    if held.resized then
      terminal:usual_size()
    end
  end })
  if params.screens then
    return pty_stream.screens(terminal, stream)
  end
  return pty_stream.output(terminal, params, stream)
end

return {
  method = "pty.attach",
  scope = "terminal",
  stream = true,
  params = {
    pty_id = { type = "uuid" },
    since_seq = { type = "integer", min = 0, optional = true },
    scrollback_rows = { type = "integer", min = 0, max = 1000, optional = true },
    screens = { type = "boolean", optional = true },
  },
  handler = function(app, session, params, stream)
    local shell, message, code = hidden_shells.of_pty(app, params.pty_id)
    if not shell then
      return nil, message, code
    end
    return handler(app, session, params, stream, shell)
  end,
}
