-- pty.resize: the size of a hidden shell's terminal while this connection is attached to it.
-- Main thread of efrd.
local hidden_shells = require "efr.daemon.hidden_shells"

return {
  method = "pty.resize",
  scope = "terminal",
  params = {
    pty_id = { type = "uuid" },
    size = {
      type = "table",
      fields = {
        cols = { type = "integer", min = 1 },
        rows = { type = "integer", min = 1 },
      },
    },
  },
  handler = function(app, session, params)
    local shell, message, code = hidden_shells.of_pty(app, params.pty_id)
    if not shell then
      return nil, message, code
    end
    -- Nobody would put it back.
    local held = session.ptys and session.ptys[params.pty_id]
    if not held then
      return nil, "this connection is not attached to the terminal", "conflict"
    end
    local size
    size, message = shell:terminal():resize(params.size.cols, params.size.rows)
    if not size then
      return nil, message, "internal"
    end
    held.resized = true
    return { size = size }
  end,
}
