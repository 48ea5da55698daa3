-- Owns: the settings of [render.colors].
-- Must not know: how a colour gets to the terminal.

local colours = require "efr.config.colour"

local function colour(name, example, doc)
  return {
    name = name, type = "colour", example = example, client = true, doc = doc,
  }
end

return {
  name = "render.colors",
  doc = "The colours of roles: " .. colours.SHAPE .. ".",
  keys = {
    colour("text", "white", "Prose; unset: the terminal's own."),
    colour("muted", "bright-black", "Labels, rules and notes; unset: dim."),
    colour("accent", "yellow", "The moving dot, and headings."),
    colour("heading", "yellow", "Headings of the first two levels; unset: accent."),
    colour("link", "blue", "Links."),
    colour("code", "cyan", "Code inside text, and commands."),
    colour("success", "green", "What went well."),
    colour("warning", "yellow", "Titles, and what is not trusted."),
    colour("error", "red", "What failed."),
    colour("quote", "white", "Quoted text."),
  },
}
