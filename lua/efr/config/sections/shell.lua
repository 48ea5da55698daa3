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
      name = "sudo_cache", type = "choice", default = "keep", choices = { "keep", "per_call" },
      doc = "keep: sudo remembers your password as it does in a terminal. per_call: efr makes " ..
        "sudo and doas forget it after each command.",
    },
  },
}
