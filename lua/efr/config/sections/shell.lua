-- Owns: the settings of [shell].
-- Must not know: how they are read.

return {
  name = "shell",
  doc = "The hidden zsh of a conversation.",
  keys = {
    {
      name = "program", type = "path", example = "/usr/bin/zsh",
      doc = "The zsh to start; unset: your login shell if it is a zsh, else the first zsh on PATH.",
    },
    {
      name = "login", type = "boolean", default = true,
      doc = "Whether it starts as a login shell.",
    },
    {
      name = "idle_minutes", type = "integer", default = 60, min = 0, max = 525600,
      doc = "A hidden shell that was at its prompt for so long, unwatched, ends; the next " ..
        "command starts a new one without its variables. 0 keeps it.",
    },
    {
      name = "interactive_timeout_minutes", type = "integer", default = 60, min = 1, max = 1440,
      doc = "How long a command outside the sandbox that may ask for something is waited for " ..
        "while you follow the turn, beyond the model's own limit.",
    },
    {
      name = "sudo_cache", type = "choice", default = "keep", choices = { "keep", "per_call" },
      doc = "keep: sudo remembers your password as it does in a terminal. per_call: efr makes " ..
        "sudo and doas forget it after each command.",
    },
  },
}
