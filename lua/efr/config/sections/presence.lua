-- Owns: the settings of [presence].
-- Must not know: how they are read.

return {
  name = "presence",
  doc = "When you count as away, and how long questions wait then.",
  keys = {
    {
      name = "away_after_minutes", type = "integer", default = 10, min = 1, max = 1440,
      doc = "Without a prompt, an answer or keys for so many minutes you count as away.",
    },
    {
      name = "away_wait_secs", type = "integer", default = 300, min = 10, max = 86400,
      doc = "While you are away, a question waits so many seconds; then its command does not run.",
    },
  },
}
