-- Owns: the settings of [openai_compatible].
-- Must not know: how they are read.

return {
  name = "openai_compatible",
  doc = "Chat completions of Ollama, llama.cpp, vLLM, OpenRouter and the like.",
  keys = {
    {
      name = "base_url", type = "url", restart = true,
      doc = "Where the server is, such as http://localhost:11434/v1. This provider needs it.",
    },
    {
      name = "models", type = "list", example = { "qwen3:8b" },
      items = {
        type = "either", shape = "a model id or a table with id",
        either = {
          { type = "string" },
          {
            type = "table",
            fields = {
              id = { type = "string", required = true },
              context_window = { type = "integer", min = 1000, max = 100000000 },
              max_output_tokens = { type = "integer", min = 1, max = 1000000 },
            },
          },
        },
      },
      doc = "The models: an id, or {id, context_window, max_output_tokens}; unset: what the " ..
        "server lists.",
    },
  },
}
