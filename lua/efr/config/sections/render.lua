-- Owns: the settings of [render].
-- Must not know: how they are read.

local THEMES <const> = {
  "ansi", "catppuccin-latte", "catppuccin-mocha", "gruvbox-dark", "gruvbox-light", "nord",
}

return {
  name = "render",
  doc = "How efr shows a turn.",
  keys = {
    {
      name = "theme", type = "choice", client = true, example = "auto",
      choices = { "auto", table.unpack(THEMES) },
      doc = "Colours of code; unset: the terminal's own. auto takes theme_dark or theme_light.",
    },
    {
      name = "theme_dark", type = "choice", client = true, default = "catppuccin-mocha",
      choices = THEMES,
      doc = "The theme that auto takes on a dark terminal.",
    },
    {
      name = "theme_light", type = "choice", client = true, default = "catppuccin-latte",
      choices = THEMES,
      doc = "The theme that auto takes on a light terminal (EFR_TERMINAL_BG=light).",
    },
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
