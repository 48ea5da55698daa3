-- Owns: the settings of [model].
-- Must not know: how they are read.

return {
  name = "model",
  doc = "Which model answers, and how it is asked.",
  keys = {
    {
      name = "provider", type = "choice", default = "openai-compatible", restart = true,
      choices = { "openai-compatible", "scripted" },
      doc = "Who answers: a server with the chat completions API, or a Lua file.",
    },
    {
      name = "name", type = "string", example = "qwen3:8b",
      doc = "The id of the model; unset: the first model of the list.",
    },
    {
      name = "effort", type = "string", example = "low",
      pattern = "^[a-z0-9_-]" .. ("[a-z0-9_-]?"):rep(31) .. "$",
      shape = "1 to 32 of a-z, 0-9, _ and -",
      doc = "The reasoning effort that is asked for; unset: none is sent.",
    },
    {
      name = "system_prompt", type = "string", example = "You are ...",
      doc = "Replaces the built-in system prompt.",
    },
    {
      name = "max_output_tokens", type = "integer", min = 1, max = 1000000, example = 8192,
      doc = "The most tokens of one answer; unset: the server decides.",
    },
  },
}
