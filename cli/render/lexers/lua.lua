-- Tokens of Lua.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

return lexing.new {
  blocks = {
    { open = "--[[", close = "]]", role = "code.comment" },
    { open = "[[", close = "]]", role = "code.string" },
  },
  extra = lexing.token(lexing.P "--" * lexing.P(1) ^ 0, "code.comment"),
  keywords = lexing.set [[
    and break do else elseif end for function goto if in local not or repeat return then until
    while]],
  constants = lexing.set "nil true false self",
}
