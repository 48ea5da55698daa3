-- Owns: what the environment of a contained call loses and gets, as patterns for the launcher.
-- Must not know: the values (the launcher filters its own environment).
-- Runs in efrd. Pure.

local list = require "efr.util.list"

local M = {}

-- Gone, always; with regard to case.
M.UNSET = {
  "EFR_*", "_EFR_*",
  "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
  "GPG_AGENT_INFO", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "SWAYSOCK", "I3SOCK",
  "NIRI_SOCKET", "HYPRLAND_INSTANCE_SIGNATURE", "KITTY_LISTEN_ON", "NVIM", "NVIM_LISTEN_ADDRESS",
  "TMUX", "ZELLIJ*", "KRB5CCNAME",
  "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERMINFO", "COLORFGBG", "WINDOWID", "VTE_VERSION",
  "TMUX_PANE", "STY", "GHOSTTY_*", "KITTY_*", "WEZTERM_*", "ITERM_*", "KONSOLE_*",
  "*_proxy", "*_PROXY", "NO_PROXY", "no_proxy",
  "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*",
}
-- Gone unless kept; without regard to case.
M.SECRET = {
  "*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*API_KEY*", "*APIKEY*", "*_KEY", "*_KEY_ID",
  "*CREDENTIAL*", "*_PAT", "*SESSION_ID*", "AWS_*", "AZURE_*", "GOOGLE_APPLICATION_CREDENTIALS",
  "*_AUTH",
}
M.SET = {
  { "TMPDIR", "/tmp" }, { "EFR_SANDBOX", "1" }, { "GIT_TERMINAL_PROMPT", "0" },
  { "GIT_ASKPASS", "/bin/false" }, { "SSH_ASKPASS", "/bin/false" },
  { "SSH_ASKPASS_REQUIRE", "never" }, { "GCM_INTERACTIVE", "never" },
}
-- Programs that know they are offline fail at once instead of waiting.
M.OFFLINE = {
  { "CARGO_NET_OFFLINE", "true" }, { "npm_config_offline", "true" }, { "UV_OFFLINE", "1" },
  { "GOPROXY", "off" },
}

-- Nobody can type in a call of the model, so its editor fails at once and says so.
M.EDITORS = {
  "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "SUDO_EDITOR", "SYSTEMD_EDITOR",
}
-- What no caller may set: the call's own places, and what the loader reads before the command.
M.FIXED = { "TMPDIR", "XDG_RUNTIME_DIR", "EFR_*", "_EFR_*" }

local function escape(name)
  return (name:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*"))
end

---Whether a name fits one of the patterns.
---@param patterns string[]
---@param name string
---@param any_case boolean?
---@return boolean
function M.matches(patterns, name, any_case)
  for _, pattern in ipairs(patterns) do
    local wanted, given = pattern, name
    if any_case then wanted, given = pattern:lower(), name:lower() end
    if given:match("^" .. escape(wanted) .. "$") then return true end
  end
  return false
end

-- What efr sets unless the caller gave the variable.
local function pairs_to_set(spec)
  local out = {}
  list.extend(out, M.SET)
  if spec.offline_hints ~= false and not (spec.granted and spec.granted.host_network) then
    list.extend(out, M.OFFLINE)
  end
  if spec.assets then
    for _, name in ipairs(M.EDITORS) do out[#out + 1] = { name, spec.xrt .. "/efr-sbx/editor" } end
  end
  return out
end

---The plan's fields for the environment.
---@param spec efr.sbx.Spec
---@return string[] fields
function M.fields(spec)
  local out, given = {}, {}
  local function add(keyword, items)
    for _, item in ipairs(items or {}) do list.extend(out, { keyword, item }) end
  end
  local function set(pairs_of, replaces)
    for _, pair in ipairs(pairs_of or {}) do
      if replaces or not given[pair[1]] then list.extend(out, { "set", pair[1], pair[2] }) end
      given[pair[1]] = true
    end
  end
  add("unset", M.UNSET)
  add("unset", spec.env_deny)
  add("secret", M.SECRET)
  add("keep", spec.env_keep)
  add("pass", spec.env_pass)
  for _, name in ipairs(spec.env_pass or {}) do given[name] = true end
  set(spec.env_set, true)
  set(pairs_to_set(spec))
  list.extend(out, { "set", "XDG_RUNTIME_DIR", spec.xrt })
  return out
end

return M
