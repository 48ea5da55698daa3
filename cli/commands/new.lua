-- efr new: a new conversation with its first prompt.

local prompt = require "efr.cli.prompt"

local M = { summary = "start a new conversation with its first prompt" }

M.words = prompt.words

function M.add(parser)
  prompt.add(parser)
end

function M.run(args, env)
  if #(args.prompt or {}) == 0 and not env.private.EFR_PROMPT then
    local hint = "a bare ,new in zsh makes the next prompt start a new conversation"
    return nil, "new needs a prompt", "EFR_USAGE", { hint = hint }
  end
  return prompt.run(args, env, { new_conversation = true })
end

return M
