-- Owns: the settings of [scripted].
-- Must not know: how they are read.

return {
  name = "scripted",
  doc = "Answers from a Lua file instead of a model.",
  keys = {
    {
      name = "file", type = "path", example = "~/model.lua",
      doc = "The Lua file; unset: the built-in demo.",
    },
  },
}
