-- Owns: which control socket a program of the desktop talks to, from the variables of the prompt's
-- terminal (tables.md 3).
-- Must not know: who grants it, how it is mounted. Runs in efrd, on the loop thread.
--
-- Policy: one socket, and the one variable that names it. It must be a socket of the user's own at
-- the place and with the name that the program uses, through no link; that of an X server may be
-- root's. The variables are those that came with the prompt; efrd's own count only when none came.
-- An X server that wants a cookie is refused, since the cookie's file stays hidden.

local M = {}

local HYPRLAND <const> = "^[%w_%-]+$"
local WAYLAND <const> = "^wayland%-[%w_%-]+$"

-- Kinds: the path that a value names, or nil where it names none.

local function hyprland(value, runtime)
  return value:find(HYPRLAND) and ("%s/hypr/%s/.socket.sock"):format(runtime, value)
end

local function below_runtime(pattern)
  return function(value, runtime)
    local name = value:sub(1, #runtime + 1) == runtime .. "/" and value:sub(#runtime + 2)
    return name and name:find(pattern) and value
  end
end

local function wayland(value, runtime)
  local name = value:match("^" .. runtime:gsub("%W", "%%%0") .. "/([^/]+)$") or value
  return name:find(WAYLAND) and runtime .. "/" .. name
end

local function x11(value)
  local number = value:match("^:(%d+)$") or value:match("^:(%d+)%.%d+$")
  return number and "/tmp/.X11-unix/X" .. number
end

local SESSIONS <const> = {
  hyprland = { "HYPRLAND_INSTANCE_SIGNATURE", "Hyprland session", hyprland },
  sway = { "SWAYSOCK", "sway session", below_runtime("^sway%-ipc[%w%.%-]*$") },
  i3 = { "I3SOCK", "i3 session", below_runtime("^i3/[%w%.%-]+$") },
  niri = { "NIRI_SOCKET", "niri session", below_runtime("^niri[%w%.%-]*$") },
  wayland = { "WAYLAND_DISPLAY", "Wayland session", wayland },
  x11 = { "DISPLAY", "X session", x11, x = true },
  kitty = { "KITTY_LISTEN_ON", "kitty that listens",
    function(value) return value:match("^unix:(/.+)$") end },
  tmux = { "TMUX", "tmux session", function(value) return value:match("^(/[^,]+),") end },
}

local PROGRAMS <const> = {
  hyprctl = "hyprland", swaymsg = "sway", ["i3-msg"] = "i3", niri = "niri",
  ["wl-copy"] = "wayland", ["wl-paste"] = "wayland", grim = "wayland", slurp = "wayland",
  ["wlr-randr"] = "wayland", wtype = "wayland",
  xrandr = "x11", xprop = "x11", xset = "x11", xclip = "x11", xsel = "x11", wmctrl = "x11",
  xdotool = "x11", scrot = "x11", xdpyinfo = "x11",
  kitty = "kitty", kitten = "kitty", tmux = "tmux",
}

-- The variables of the terminal that the prompt came from.
local function terminal_of(turn)
  local sent = turn.prompt.context and turn.prompt.context.desktop
  if type(sent) == "table" and next(sent) then return sent end
  return turn.app.env
end

local function needs_cookie(fs, turn, terminal)
  for _, path in ipairs({ terminal.XAUTHORITY or "", turn.app.env.XAUTHORITY or "",
    turn.home .. "/.Xauthority" }) do
    if path ~= "" and fs.lstat(path) then return true end
  end
  return false
end

-- Whether a path is a socket of the user's own, with nothing behind a link.
local function is_own_socket(turn, path, x)
  local fs = turn.app.ports.fs
  local info = fs.lstat(path)
  if not info or info.type ~= "socket" or fs.realpath(path) ~= path then return false end
  return info.uid == turn.app.ports.sys.getuid() or x and info.uid == 0
end

---The grant for a program of the desktop.
---@param turn efr.Turn
---@param program string
---@return { socket: string, variable: string[] }? grant
---@return string? why  what is missing
function M.grant(turn, program)
  local session = SESSIONS[PROGRAMS[program] or ""]
  if not session then return nil, "efr knows no socket for " .. program end
  local variable, name, path_of = session[1], session[2], session[3]
  local fs, terminal = turn.app.ports.fs, terminal_of(turn)
  local runtime = fs.realpath(turn.app.env.XDG_RUNTIME_DIR or "/nowhere") or "/nowhere"
  local value = terminal[variable]
  local path = type(value) == "string" and path_of(value, runtime)
  if not path or not is_own_socket(turn, path, session.x) then
    return nil, ("efr found no %s in the terminal of this prompt"):format(name)
  end
  if session.x and needs_cookie(fs, turn, terminal) then
    return nil, "the X server of this terminal wants a cookie, which stays hidden"
  end
  return { socket = path, variable = { variable, value } }
end

return M
