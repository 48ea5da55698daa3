-- Tokens of JavaScript and TypeScript.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

return lexing.new {
  comments = { "//" },
  blocks = {
    { open = "/*", close = "*/", role = "code.comment" },
    { open = "`", close = "`", role = "code.string" },
  },
  keywords = lexing.set [[
    async await break case catch class const continue debugger default delete do else export extends
    finally for from function get if import in instanceof let new of return set static super switch
    throw try typeof var void while with yield interface type enum implements declare namespace
    readonly private protected public abstract as satisfies keyof]],
  types = lexing.set [[
    string number boolean object any unknown never symbol bigint Array Map Set Promise Record]],
  constants = lexing.set "true false null undefined this NaN Infinity",
}
