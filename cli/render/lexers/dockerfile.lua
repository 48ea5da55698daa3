-- Tokens of Dockerfiles.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

local P <const>, R <const> = lexing.P, lexing.R
local VARIABLE <const> = P "$" * P "{" ^ -1 * (R("az", "AZ", "09") + "_") ^ 1 * P "}" ^ -1

return lexing.new {
  comments = { "#" },
  extra = lexing.token(VARIABLE, "code.number"),
  any_case = true,
  keywords = lexing.set [[
    from run cmd label expose env add copy entrypoint volume user workdir arg onbuild stopsignal
    healthcheck shell as]],
  calls = false,
}
