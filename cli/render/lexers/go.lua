-- Tokens of Go.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

return lexing.new {
  comments = { "//" },
  blocks = {
    { open = "/*", close = "*/", role = "code.comment" },
    { open = "`", close = "`", role = "code.string" },
  },
  keywords = lexing.set [[
    break case chan const continue default defer else fallthrough for func go goto if import
    interface map package range return select struct switch type var]],
  types = lexing.set [[
    bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint
    uint8 uint16 uint32 uint64 uintptr any]],
  constants = lexing.set "true false nil iota",
}
