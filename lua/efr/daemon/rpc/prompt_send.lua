-- prompt.send: a prompt for a conversation, which is recorded before the answer.
-- Main thread of efrd; waits for the commit.

local CONTEXT <const> = {
  pwd = { type = "string", min = 1, max = 4096, pattern = "^/", shape = "an absolute path" },
  oldpwd = { type = "string", max = 4096, optional = true },
  tty = { type = "string", max = 256, optional = true },
  shell_pid = { type = "integer", min = 1, optional = true },
  last_status = { type = "integer", optional = true },
  shlvl = { type = "integer", optional = true },
  ssh_connection = { type = "string", max = 1024, optional = true },
  hostname = { type = "string", max = 256, optional = true },
}

local SETTINGS <const> = {
  mode = { type = "string", max = 64, optional = true },
  model = { type = "string", max = 256, optional = true },
  effort = { type = "string", max = 256, optional = true },
}

local RECENT <const> = {
  type = "table",
  fields = {
    command = { type = "string", max = 65536 },
    status = { type = "integer", optional = true },
  },
}

return {
  method = "prompt.send",
  scope = "operate",
  command = true,
  params = {
    conversation_id = { type = "uuid", optional = true },
    new_conversation = { type = "boolean", optional = true },
    text = { type = "string", max = 4 * 1024 * 1024 },
    context = { type = "table", fields = CONTEXT, optional = true },
    last_command = { type = "string", optional = true },
    settings = { type = "table", fields = SETTINGS, optional = true },
    recent_commands = { type = "list", items = RECENT, max = 64, optional = true },
  },
  handler = function(app, session, params)
    return app.conversations:prompt_send(params, session)
  end,
}
