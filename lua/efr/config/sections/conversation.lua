-- Owns: the settings of [conversation].
-- Must not know: how they are read.

return {
  name = "conversation",
  doc = "Queues, questions and the pace of updates.",
  keys = {
    {
      name = "max_queued", type = "integer", min = 1, max = 1024, default = 16,
      doc = "How many prompts may wait in one conversation.",
    },
    {
      name = "approval_timeout_secs", type = "integer", min = 1, max = 604800, example = 3600,
      doc = "How long a question waits for its answer; unset: without end.",
    },
    {
      name = "update_interval_ms", type = "integer", min = 0, max = 60000, default = 200,
      doc = "The least time between two recorded updates of one call.",
    },
    {
      name = "draft_interval_ms", type = "integer", min = 0, max = 1000, default = 16,
      doc = "The least time between two batches of text that is not yet complete.",
    },
    {
      name = "tty_idle_hours", type = "integer", min = 0, max = 8760, default = 12,
      doc = "After how long a terminal's next prompt starts a new conversation; 0: never.",
    },
  },
}
