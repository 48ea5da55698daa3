-- pty.write: keys of a person for the program that holds a hidden shell's terminal.
-- Main thread of efrd. What was typed is never logged or recorded here.
local hidden_shells = require "efr.daemon.hidden_shells"
local text = require "efr.util.text"

local DATA_MAX <const> = 65536 -- of base64

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
    local ok
    ok, message = shell:type_keys(bytes)
    if not ok then
      return nil, message, "conflict"
    end
    return {}
  end,
}
