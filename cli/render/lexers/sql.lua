-- Tokens of SQL.
-- Must not know: colours. Pure.
local lexing = require "efr.cli.render.lexing"

return lexing.new {
  comments = { "--" },
  blocks = { { open = "/*", close = "*/", role = "code.comment" } },
  any_case = true,
  keywords = lexing.set [[
    select from where and or not in is like between join left right inner outer full cross on using
    group by order having limit offset insert into values update set delete create table view index
    trigger drop alter add column primary key foreign references unique check default constraint
    union all distinct as case when then else end exists with recursive begin commit rollback
    explain pragma if asc desc returning]],
  types = lexing.set [[
    integer int bigint smallint text varchar char blob real double numeric decimal date time
    timestamp boolean json uuid serial]],
  constants = lexing.set "null true false",
}
