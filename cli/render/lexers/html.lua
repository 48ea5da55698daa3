-- Tokens of HTML and XML.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const>, S <const> = lexing.P, lexing.R, lexing.S
local NAME <const> = (R("az", "AZ", "09") + S "_-:.") ^ 1

return lexing.new {
  blocks = { { open = "<!--", close = "-->", role = "code.comment" } },
  quotes = { '"' },
  extra = lexing.token(P "<" * S "/!?" ^ -1 * NAME + P "/" ^ -1 * ">", "code.keyword")
    + lexing.token(NAME * #P "=", "code.type") + lexing.token(P "&" * NAME * ";", "code.number"),
  calls = false,
}
