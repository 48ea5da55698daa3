-- Tokens of shell lines: sh, bash, zsh.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const>, S <const> = lexing.P, lexing.R, lexing.S
local token <const> = lexing.token

local NAME <const> = (R("az", "AZ", "09") + S "_@#?*!$-")
local VARIABLE <const> = P "${" * (1 - P "}") ^ 0 * P "}" ^ -1
  + P "$" * (R("az", "AZ", "09") + "_") ^ 1 + P "$" * NAME
local OPTION <const> = P "-" * P "-" ^ -1 * (R("az", "AZ", "09") + "-") ^ 1

return lexing.new {
  quotes = { '"', "'" },
  calls = false,
  word = (R("az", "AZ", "09") + S "_./~+:@") * (R("az", "AZ", "09") + S "_./~+:@-=") ^ 0,
  extra = token(P " #" * P(1) ^ 0 + P "#" * P(1) ^ 0, "code.comment")
    + token(P " " * OPTION, "code.type") + token(VARIABLE, "code.number"),
  keywords = lexing.set [[
    if then else elif fi for while until do done case esac in function select repeat return exit
    break continue local export readonly declare typeset unset set shift source alias eval exec
    trap cd echo printf test time sudo]],
}
