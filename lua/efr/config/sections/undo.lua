-- Owns: the settings of [undo].
-- Must not know: how they are read.

return {
  name = "undo",
  doc = "Taking back what a turn changed.",
  keys = {
    {
      name = "enabled", type = "boolean", default = true,
      doc = "false: efr undo does nothing, and no turn offers it.",
    },
  },
}
