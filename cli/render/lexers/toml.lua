-- Tokens of TOML and of files that look like it (ini, conf).
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const>, S <const> = lexing.P, lexing.R, lexing.S
local KEY <const> = (R("az", "AZ", "09") + S "_-.") ^ 1
local HEAD <const> = P "[" * P "[" ^ -1 * KEY * P "]" ^ 1

return lexing.new {
  comments = { "#", ";" },
  blocks = {
    { open = '"""', close = '"""', role = "code.string" },
    { open = "'''", close = "'''", role = "code.string" },
  },
  extra = lexing.token(HEAD, "code.type") + lexing.token(KEY * #(S " " ^ 0 * "="), "code.keyword"),
  constants = lexing.set "true false inf nan",
  calls = false,
}
