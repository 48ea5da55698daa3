-- pty.write: keys of a person for the program that holds a hidden shell's terminal.
-- Main thread of efrd; waits a second at most. What was typed is never logged or recorded here.
--
-- A program gets what it reads. Keys that it leaves unread are few, and go with its end.
local async = require "efr.util.async"
local hidden_shells = require "efr.daemon.hidden_shells"
local text = require "efr.util.text"

local DATA_MAX <const> = 65536 -- of base64
local WAIT_MS <const>, WAITS_MAX <const>, PAUSE_MS <const> = 10, 100, 1

return {
  method = "pty.write",
  scope = "terminal",
  params = {
    pty_id = { type = "uuid" },
    data = { type = "string", min = 1, max = DATA_MAX },
  },
  handler = function(app, _, params)
    local shell, message, code = hidden_shells.of_pty(app, params.pty_id)
    if not shell then
      return nil, message, code
    end
    local bytes = text.unbase64(params.data)
    if not bytes then
      return nil, "data is no base64", "invalid"
    end
    app.presence:input()
    local written, waits = 0, 0
    while written < #bytes do
      local count
      count, message = shell:type_keys(bytes:sub(written + 1))
      if not count then
        return nil, message, "conflict", { written = written }
      elseif count == 0 and waits >= WAITS_MAX then
        return nil, "the program does not read its keys", "busy", { written = written }
      end
      -- Also after a piece that went in: the terminal counts it as unread a moment later.
      async.sleep(count == 0 and WAIT_MS or PAUSE_MS)
      written, waits = written + count, count == 0 and waits + 1 or 0
    end
    return {}
  end,
}
