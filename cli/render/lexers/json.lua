-- Tokens of JSON.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, S <const> = lexing.P, lexing.S
local STRING <const> = P '"' * (P "\\" * 1 + (1 - P '"')) ^ 0 * P '"'

return lexing.new {
  comments = { "//" },
  extra = lexing.token(STRING * #(S " " ^ 0 * ":"), "code.keyword"),
  constants = lexing.set "true false null",
  calls = false,
}
