-- Owns: the settings at the top of config.toml.
-- Must not know: how they are read.

local log = require "efr.util.log"

return {
  name = "",
  doc = "At the top of the file, before the first section.",
  keys = {
    {
      name = "log", type = "string", default = "info",
      check = log.parse_filter,
      doc = "What is logged: a level (error, warn, info, debug, trace) or part=level pairs, " ..
        "separated by commas.",
    },
  },
}
