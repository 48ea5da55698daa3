-- Tokens of CSS.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local R <const>, S <const> = lexing.R, lexing.S
local NAME <const> = (R("az", "AZ", "09") + S "_-") ^ 1

return lexing.new {
  blocks = { { open = "/*", close = "*/", role = "code.comment" } },
  word = NAME,
  extra = lexing.token(NAME * #(S " " ^ 0 * ":" * S " "), "code.keyword")
    + lexing.token(S ".#@" * NAME, "code.type"),
}
