std = "lua54"
codes = true
self = false
max_line_length = 100
max_cyclomatic_complexity = 15
ignore = { "21[12]/_.*" } -- unused with a leading underscore
exclude_files = { "build" }
files["spec"] = { std = "+busted", max_line_length = 120 }
files["lua/efr/meta"] = { ignore = { "212", "241" }, max_line_length = 120 } -- stubs have parameters and no bodies
