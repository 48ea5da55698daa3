-- prompt.send: a prompt for a conversation, which is recorded before the answer.
-- Main thread of efrd; waits for the commit.

local VALUE <const> = { type = "string", max = 4096, optional = true }

-- Variables that name a control socket of the terminal's desktop (conv/desktop).
local DESKTOP <const> = {
  HYPRLAND_INSTANCE_SIGNATURE = VALUE, SWAYSOCK = VALUE, I3SOCK = VALUE, NIRI_SOCKET = VALUE,
  WAYLAND_DISPLAY = VALUE, DISPLAY = VALUE, XAUTHORITY = VALUE, KITTY_LISTEN_ON = VALUE,
  TMUX = VALUE,
}

local CONTEXT <const> = {
  pwd = { type = "string", min = 1, max = 4096, pattern = "^/", shape = "an absolute path" },
  oldpwd = { type = "string", max = 4096, optional = true },
  tty = { type = "string", max = 256, optional = true },
  shell_pid = { type = "integer", min = 1, optional = true },
  last_status = { type = "integer", optional = true },
  shlvl = { type = "integer", optional = true },
  ssh_connection = { type = "string", max = 1024, optional = true },
  hostname = { type = "string", max = 256, optional = true },
  desktop = { type = "table", fields = DESKTOP, optional = true },
}

local SETTINGS <const> = {
  mode = { type = "string", max = 64, optional = true },
  model = { type = "string", max = 256, optional = true },
  effort = { type = "string", max = 256, optional = true },
}

local RECENT <const> = {
  type = "table",
  fields = {
    command = { type = "string", max = 65536, nul = true },
    status = { type = "integer", optional = true },
  },
}

-- Whoever sends a prompt follows it next: until he has subscribed or is gone, his terminal needs no
-- notice of what the turn does.
local function will_follow(app, session, id)
  session.sent_to = session.sent_to or {}
  if session.tty and not session.sent_to[id] then
    session.sent_to[id] = true
    session:at_close(app.followers:add(id, session.tty))
  end
end

return {
  method = "prompt.send",
  scope = "operate",
  command = true,
  params = {
    conversation_id = { type = "uuid", optional = true },
    new_conversation = { type = "boolean", optional = true },
    text = { type = "string", max = 4 * 1024 * 1024, nul = true },
    context = { type = "table", fields = CONTEXT, optional = true },
    last_command = { type = "string", nul = true, optional = true },
    settings = { type = "table", fields = SETTINGS, optional = true },
    recent_commands = { type = "list", items = RECENT, max = 64, optional = true },
  },
  handler = function(app, session, params)
    local result, message, code, data = app.conversations:prompt_send(params, session)
    if result then
      will_follow(app, session, result.conversation_id)
    end
    return result, message, code, data
  end,
}
