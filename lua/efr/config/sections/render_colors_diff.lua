-- Owns: the settings of [render.colors.diff].
-- Must not know: how a colour gets to the terminal.

local function colour(name, example, doc)
  return {
    name = name, type = "colour", example = example, client = true, doc = doc,
  }
end

return {
  name = "render.colors.diff",
  doc = "The colours of a diff.",
  keys = {
    colour("add", "green", "Lines that were added."),
    colour("remove", "red", "Lines that were removed."),
    colour("hunk", "cyan", "Where a part of the diff stands."),
  },
}
