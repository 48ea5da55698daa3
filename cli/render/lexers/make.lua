-- Tokens of makefiles.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const>, S <const> = lexing.P, lexing.R, lexing.S
local VARIABLE <const> = P "$(" * (1 - P ")") ^ 0 * P ")" ^ -1 + P "$" * S "@<^*?+%"
local TARGET <const> = (R("az", "AZ", "09") + S "_-./%") ^ 1

return lexing.new {
  comments = { "#" },
  extra = lexing.token(VARIABLE, "code.number")
    + lexing.token(TARGET * #(P ":" * -P "="), "code.function"),
  keywords = lexing.set "ifeq ifneq ifdef ifndef else endif include define endef export override",
  calls = false,
}
