-- Owns: the settings of [render].
-- Must not know: how they are read.

return {
  name = "render",
  doc = "How efr shows a turn.",
  keys = {
    {
      name = "motion", type = "boolean", default = true, client = true,
      doc = "Whether the status row moves.",
    },
    {
      name = "turn_summary", type = "boolean", default = true, client = true,
      doc = "Whether a turn ends with a line that sums it up.",
    },
    {
      name = "diff_lines", type = "integer", min = 0, max = 1000, default = 20, client = true,
      doc = "How many lines of a diff are shown.",
    },
  },
}
