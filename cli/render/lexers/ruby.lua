-- Tokens of Ruby.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const> = lexing.P

return lexing.new {
  comments = { "#" },
  extra = lexing.token(P ":" * lexing.WORD + P "@" ^ 1 * lexing.WORD, "code.number"),
  keywords = lexing.set [[
    alias and begin break case class def do else elsif end ensure for if in module next not or redo
    rescue retry return super then undef unless until when while yield require include]],
  constants = lexing.set "true false nil self",
}
