-- Tokens of Python.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const> = lexing.P

return lexing.new {
  comments = { "#" },
  blocks = {
    { open = '"""', close = '"""', role = "code.string" },
    { open = "'''", close = "'''", role = "code.string" },
  },
  extra = lexing.token(P "@" * lexing.WORD * (P "." * lexing.WORD) ^ 0, "code.function"),
  keywords = lexing.set [[
    and as assert async await break class continue def del elif else except finally for from global
    if import in is lambda match case nonlocal not or pass raise return try while with yield]],
  types = lexing.set [[
    int str float bool bytes list dict set tuple object type complex frozenset Exception]],
  constants = lexing.set "None True False self cls",
}
