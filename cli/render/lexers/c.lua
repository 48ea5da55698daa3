-- Tokens of C and of languages that look like it (C++, Java, C#, Kotlin, Swift).
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, S <const> = lexing.P, lexing.S

return lexing.new {
  comments = { "//" },
  blocks = { { open = "/*", close = "*/", role = "code.comment" } },
  extra = lexing.token(P "#" * S " " ^ 0 * lexing.WORD, "code.keyword"),
  keywords = lexing.set [[
    break case continue default do else for goto if return switch while sizeof typedef struct union
    enum static extern const volatile inline register restrict auto class namespace template
    typename public private protected virtual override new delete this throw try catch using import
    package final abstract interface extends implements var val fun func let guard async await]],
  types = lexing.set [[
    void char short int long float double signed unsigned bool size_t ssize_t int8_t int16_t int32_t
    int64_t uint8_t uint16_t uint32_t uint64_t pid_t uid_t off_t FILE String boolean byte string]],
  constants = lexing.set "NULL nullptr true false null",
}
