-- Tokens of Rust.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const> = lexing.P, lexing.R
local LIFETIME <const> = P "'" * R("az", "AZ") * (R("az", "AZ", "09") + "_") ^ 0 * -P "'"

return lexing.new {
  comments = { "//" },
  blocks = { { open = "/*", close = "*/", role = "code.comment" } },
  extra = lexing.token(LIFETIME, "code.type") + lexing.token(lexing.WORD * "!", "code.function"),
  keywords = lexing.set [[
    as async await break const continue crate dyn else enum extern fn for if impl in let loop match
    mod move mut pub ref return static struct super trait type unsafe use where while]],
  types = lexing.set [[
    bool char str i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 String Vec Option
    Result Box Self]],
  constants = lexing.set "true false None Some Ok Err self",
}
