-- efr send: a prompt to this terminal's conversation.

local prompt = require "efr.cli.prompt"

local M = { summary = "send a prompt to this terminal's conversation and follow it" }

M.words = prompt.words

function M.add(parser)
  prompt.add(parser)
  parser:option("--conversation", "the conversation, by its id"):argname("ID")
end

function M.run(args, env)
  local id = args.conversation
  if id and not id:find("^%x+%-%x+%-%x+%-%x+%-%x+$") then
    return nil, "--conversation takes the whole id, not " .. id, "EFR_USAGE"
  end
  return prompt.run(args, env, { conversation_id = args.conversation })
end

return M
