-- Tokens of YAML.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const>, S <const> = lexing.P, lexing.R, lexing.S
local KEY <const> = (R("az", "AZ", "09") + S "_-./") ^ 1

return lexing.new {
  comments = { "#" },
  extra = lexing.token(KEY * #(P ":" * (S " " + -P(1))), "code.keyword")
    + lexing.token(S "&*!" * KEY, "code.type"),
  constants = lexing.set "true false null yes no on off",
  calls = false,
}
