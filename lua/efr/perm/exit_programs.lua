-- Owns: which exits one simple command needs by its program, its verbs and its options.
-- Must not know: paths that it reads or writes (exit_paths), modes, who decides in the end.
-- Runs in efrd and efr. Pure.
--
-- A command here is {name, args, assigns, moved}: name is the program without its directory; what
-- efr cannot know of a word stands in args as "\0", and a verb with it may be any verb. An exit is
-- reported as emit(kind, {target?, why, user_only?, ...}).

local git = require "efr.perm.exit_git"
local matching = require "efr.perm.matching"
local needs = require "efr.perm.needs"
local tables = require "efr.perm.exit_tables"
local words = require "efr.perm.exit_words"

local M = {}

local has <const>, first_operand <const> = words.has, words.first_operand

-- Buses and services ----------------------------------------------------------------------------

-- Whether the bus filter serves the line: no option that leads to another machine or image.
local function stays_here(args)
  for _, arg in ipairs(args) do
    for option in pairs(tables.BUS_PLACES) do
      if matching.hits(option, arg) then return false end
    end
  end
  return true
end

local function bus(emit, which, why, served)
  emit("bus", { target = which, why = why, grants = { { bus = which } }, filtered = served,
    user_only = which == "session" })
end

local function is_unit_path(word)
  return word:find("/", 1, true) ~= nil
end

-- Whether the forms of tables.md 6 hold: plain names, no template, no path.
local function named_units(args, verb_at)
  local any = false
  for i = verb_at + 1, #args do
    local arg = args[i]
    if words.is_unknown(arg) or is_unit_path(arg) or arg:find("@", 1, true) then return false end
    any = any or arg:sub(1, 1) ~= "-"
  end
  return any
end

local function systemctl_user(args, verb, at, emit)
  if tables.SYSTEMCTL_PERSISTS[verb] then
    local user_only = tables.SYSTEMCTL_USER_ONLY[verb] or not named_units(args, at)
    emit("persistence", { target = verb, why = ("systemctl --user %s lasts"):format(verb),
      user_only = user_only, named = "units" })
    return
  end
  local served = not verb and has(args, "--failed") or tables.FILTERED_SYSTEMCTL[verb] or false
  bus(emit, "session", "it talks to your user manager", served and stays_here(args))
end

local function systemctl(cmd, emit)
  local args = cmd.args
  local verb, at = first_operand(args, tables.BUS_PLACES)
  if has(args, "--user") then return systemctl_user(args, verb, at, emit) end
  if not verb or tables.SYSTEMCTL_READS[verb] then
    local served = (not verb and has(args, "--failed")) or tables.FILTERED_SYSTEMCTL[verb]
    return bus(emit, "system", "it talks to the system manager", served and stays_here(args))
  end
  emit("privilege", { target = verb, why = ("systemctl %s changes the system"):format(
    words.shown(verb)) })
end

local function loginctl(cmd, emit)
  local verb = first_operand(cmd.args, tables.BUS_PLACES)
  if not verb or tables.LOGINCTL_READS[verb] then
    return bus(emit, "system", "it talks to the login manager", stays_here(cmd.args))
  elseif verb == "enable-linger" or verb == "disable-linger" then
    return emit("persistence", { target = "linger", why = "it changes lingering", named = "linger",
      user_only = first_operand(cmd.args, tables.BUS_PLACES, 2) ~= nil })
  end
  emit("privilege", { target = verb, why = "loginctl changes sessions" })
end

-- hostnamectl, timedatectl, localectl.
local function settings_ctl(cmd, emit)
  local verb = first_operand(cmd.args, tables.BUS_PLACES)
  local sets = verb and (verb:find("^set%-") or words.is_unknown(verb)
    or verb == "hostname" and first_operand(cmd.args, tables.BUS_PLACES, 2))
  if sets then
    return emit("privilege",
      { target = words.shown(verb), why = cmd.name .. " changes the system" })
  end
  local served = not verb or tables.FILTERED_CTL[verb] or false
  bus(emit, "system", cmd.name .. " asks a system service", served and stays_here(cmd.args))
end

local function busctl(cmd, emit)
  local verb = first_operand(cmd.args, tables.BUS_PLACES)
  if verb and (tables.BUS_CALLS[verb] or words.is_unknown(verb)) then
    return emit("privilege", { target = words.shown(verb), why = "it calls a service" })
  end
  bus(emit, has(cmd.args, "--user") and "session" or "system", "it listens on a bus")
end

local function gdbus(cmd, emit)
  local verb = first_operand(cmd.args, {})
  if verb and (tables.BUS_CALLS[verb] or words.is_unknown(verb)) then
    return emit("privilege", { target = words.shown(verb), why = "it calls a service" })
  end
  bus(emit, has(cmd.args, "--system") and "system" or "session", "it listens on a bus")
end

local function nmcli(cmd, emit)
  local reads = #cmd.args == 0
  for _, arg in ipairs(cmd.args) do reads = reads or tables.NMCLI_READS[arg] == true end
  emit("bus", { target = "system", why = cmd.name .. " talks to the network's manager",
    grants = { { bus = "system" } }, user_only = not reads })
end

local function coredumpctl(cmd, emit)
  local verb = first_operand(cmd.args, {})
  if verb and (tables.COREDUMPCTL[verb] or words.is_unknown(verb)) then
    bus(emit, "system", "it asks for a core dump")
  end
end

local function notify_send(cmd, emit)
  local waits = words.any(cmd.args, { "--wait", "-A", "--action", "-w" })
  bus(emit, "session", "it shows a notification", not waits)
end

-- Lasting ---------------------------------------------------------------------------------------

local function crontab(cmd, emit)
  local args = cmd.args
  if has(args, "-l") and not words.any(args, { "-e", "-r", "-i" }) then
    return emit("outside", { target = "crontab -l", why = "the crontab cannot be read inside",
      read_only = true })
  end
  -- The input of `crontab -` is known only where the line shows it, which needs its own reading.
  local file = first_operand(args, { ["-u"] = true })
  local removes = has(args, "-r") and not file
  local named = removes or file and file ~= "-" and not words.is_unknown(file)
  emit("persistence", { target = "crontab", why = "it changes the crontab", named = "crontab",
    user_only = not named or has(args, "-e") or has(args, "-u") })
end

local function lasts(cmd, emit)
  emit("persistence", { target = cmd.name, why = cmd.name .. " runs something later",
    user_only = true })
end

local function systemd_run(cmd, emit)
  if has(cmd.args, "--user") then
    return emit("persistence", { target = "systemd-run --user", user_only = true,
      why = "it starts a unit of its own" })
  end
  emit("privilege", { target = "systemd-run", why = "it starts a unit of the system" })
end

-- Sending and fetching --------------------------------------------------------------------------

local function host_exit(emit, name, port, why)
  emit("host", { target = name or "the network", host = name, port = port, why = why })
end

-- Packages come from the hosts of a preset, which the user's own settings of the tool name.
local function packages(emit, why, preset)
  emit("host", { target = preset or "the network", preset = preset, why = why })
end

local function upload(emit, target, why, user_only)
  emit("upload", { target = target, why = why, user_only = user_only or nil })
end

-- The hosts of the URLs; without any, whether all URLs are files of this machine.
local function hosts_of(args)
  local out, files = {}, 0
  for _, arg in ipairs(args) do
    if arg:find("^file:") then
      files = files + 1
    elseif arg:find("^%a[%w+.-]*://") then
      local name, port = needs.host(arg)
      out[#out + 1] = { name = name, port = port }
    end
  end
  return out, files > 0
end

-- A host for every URL of the command. Without one, a word may still be a name without a scheme.
local function url_hosts(cmd, emit, why)
  local found, files = hosts_of(cmd.args)
  if #found == 0 and not files then host_exit(emit, nil, nil, why) end
  for _, host in ipairs(found) do host_exit(emit, host.name, host.port, why) end
end

local function first_host(args)
  local found = hosts_of(args)[1]
  return found and found.name
end

local function curl(cmd, emit)
  local args = cmd.args
  local method = words.value(args, "-X", "--request")
  local writes = method and (tables.METHODS[method:upper()] or words.is_unknown(method))
  if writes or words.any(args, tables.CURL_DATA) then
    return upload(emit, first_host(args) or "a host", "curl sends data")
  end
  url_hosts(cmd, emit, "curl reaches a host")
end

local function wget(cmd, emit)
  local method = words.value(cmd.args, nil, "--method")
  local writes = method and (tables.METHODS[method:upper()] or words.is_unknown(method))
  if writes or words.any(cmd.args, tables.WGET_DATA) then
    return upload(emit, first_host(cmd.args) or "a host", "wget sends data")
  end
  url_hosts(cmd, emit, "wget reaches a host")
end

local function copies_out(cmd, emit)
  upload(emit, words.remote(cmd.args) or "a host", cmd.name .. " copies to or from a host",
    words.any(cmd.args, { "-S", "-o", "-F", "-J" }))
end

local function rsync(cmd, emit)
  local remote = words.remote(cmd.args)
  if remote then
    local chooses = words.any(cmd.args, { "-e", "--rsh", "--rsync-path" })
    upload(emit, remote, "rsync copies to or from a host", chooses)
  end
end

local function node_manager(cmd, emit)
  local verb, at = first_operand(cmd.args, {})
  local by_npm = cmd.name == "yarn" and verb == "npm" and cmd.args[at + 1] == "publish"
  if verb == "publish" or by_npm then
    return upload(emit, "the registry", cmd.name .. " publishes a package")
  end
  local fetches = verb and (tables.NODE_FETCHES[verb] or words.is_unknown(verb))
  if fetches or cmd.name == "yarn" and not verb then
    packages(emit, cmd.name .. " fetches packages", "@npm")
  end
end

local function verbs(name, label)
  local known <const> = tables.VERBS[name]
  return function(cmd, emit)
    local verb = first_operand(cmd.args, {})
    if verb and verb:sub(1, 1) == "+" then verb = first_operand(cmd.args, {}, 2) end
    if not verb then return end
    if known.upload[verb] then
      upload(emit, "the registry", label .. " changes what is published")
    elseif known.host[verb] or words.is_unknown(verb) then
      packages(emit, label .. " fetches packages", known.preset)
    end
  end
end

local pip <const> = verbs("pip", "pip")

local function python(cmd, emit)
  for i, arg in ipairs(cmd.args) do
    if arg == "-m" and cmd.args[i + 1] == "pip" then
      return pip({ name = "pip", args = table.move(cmd.args, i + 2, #cmd.args, 1, {}) }, emit)
    end
  end
end

local function go(cmd, emit)
  local verb, at = first_operand(cmd.args, { ["-C"] = true })
  local sub = at and cmd.args[at + 1]
  local fetches = verb == "get" or verb == "install" or words.is_unknown(verb)
    or verb == "mod" and tables.GO_MOD[sub]
  if verb == "run" then
    for i = at + 1, #cmd.args do fetches = fetches or cmd.args[i]:find("@", 1, true) ~= nil end
  end
  if fetches then packages(emit, "go fetches modules", "@go") end
end

local function uv(cmd, emit)
  local verb, at = first_operand(cmd.args, {})
  local sub = at and cmd.args[at + 1]
  local fetches = tables.UV[verb] or words.is_unknown(verb)
    or tables.UV_GROUPS[verb] and tables.UV_GROUP_VERBS[sub]
  if fetches then packages(emit, "uv fetches packages", "@pypi") end
end

local function twine(cmd, emit)
  local verb = first_operand(cmd.args, {})
  if tables.TWINE[verb] or words.is_unknown(verb) then
    return upload(emit, "the registry", "twine publishes a package")
  end
  host_exit(emit, nil, nil, "twine reaches a registry")
end

local function gh(cmd, emit)
  local group, at = first_operand(cmd.args, { ["-R"] = true, ["--repo"] = true })
  local verb = at and cmd.args[at + 1]
  local verbs_of = tables.GH_WRITES[group]
  local writes = verbs_of and (verbs_of[verb] or words.is_unknown(verb))
    or group == "api" and words.any(cmd.args, tables.GH_API_WRITES)
  if writes then
    return upload(emit, "github.com", ("gh %s changes something on a host"):format(group))
  end
  host_exit(emit, "github.com", 443, "gh reaches a host")
end

-- `ztcp -l` only listens on loopback.
local function raw_network(cmd, emit)
  if cmd.name == "ztcp" and words.any(cmd.args, { "-l", "-L", "-c" }) then return end
  local target
  for _, arg in ipairs(cmd.args) do
    local plain = arg:find("^[%w][%w%-.]*$") and arg:find(".", 1, true)
    if plain and not target then target = arg end
  end
  emit("host", { target = target or "the network", raw = true,
    why = cmd.name .. " talks to the network itself" })
end

local function package_host(cmd, emit)
  packages(emit, cmd.name .. " fetches from a host", tables.PRESETS[cmd.name])
end

-- ssh -------------------------------------------------------------------------------------------

local function ssh_redirects(args)
  if words.any(args, tables.SSH_REDIRECTS) then return true end
  for i, arg in ipairs(args) do
    local option = arg == "-o" and args[i + 1] or arg:match("^%-o(.+)$")
    local key = option and option:match("^%s*([%w]+)")
    for _, name in ipairs(tables.SSH_KEYS) do
      if key and key:lower() == name or words.is_unknown(option) then return true end
    end
  end
  return false
end

local function remote_shell(cmd, emit)
  local redirects = cmd.name == "mosh" and words.any(cmd.args, tables.MOSH_REDIRECTS)
    or cmd.name ~= "mosh" and ssh_redirects(cmd.args)
  local target = first_operand(cmd.args, tables.SSH_VALUES)
  emit("outside", { target = target and words.shown(target) or cmd.name, ssh = true,
    why = cmd.name .. " needs your keys",
    user_only = redirects or words.sets(cmd.assigns, tables.REMOTE_VARIABLES) or target == nil
      or words.is_unknown(target) })
end

-- Desktop ---------------------------------------------------------------------------------------

local function desktop_acts(cmd)
  local args = cmd.args
  if tables.DESKTOP_ACTS[cmd.name] or words.has_unknown(args) then return true end
  if cmd.name == "hyprctl" then return has(args, "dispatch") or has(args, "--batch") end
  return (cmd.name == "swaymsg" or cmd.name == "i3-msg") and #args > 0
    and not words.any(args, { "-t", "--type" })
end

local function desktop(cmd, emit)
  emit("desktop_ipc", { target = cmd.name, why = cmd.name .. " controls the desktop",
    user_only = desktop_acts(cmd) })
end

local function niri(cmd, emit)
  if cmd.args[1] ~= "msg" and not words.is_unknown(cmd.args[1]) then return end
  emit("desktop_ipc", { target = "niri", why = "niri msg controls the desktop",
    user_only = has(cmd.args, "action") or words.has_unknown(cmd.args) })
end

local KITTY_ACTS <const> = { "launch", "send-text", "send-key", "run", "action", "kitten" }

local function kitty(cmd, emit)
  if cmd.args[1] ~= "@" and not words.is_unknown(cmd.args[1]) then return end
  local acts = words.has_unknown(cmd.args)
  for _, verb in ipairs(KITTY_ACTS) do acts = acts or has(cmd.args, verb) end
  emit("desktop_ipc", { target = "kitty", why = "it controls the terminal", user_only = acts })
end

local TMUX_READS <const> = {
  ls = true, ["list-sessions"] = true, ["list-windows"] = true, ["list-panes"] = true,
  ["display-message"] = true, ["capture-pane"] = true, ["has-session"] = true,
  ["show-options"] = true, ["list-keys"] = true, ["list-clients"] = true,
}

local function tmux(cmd, emit)
  local verb = first_operand(cmd.args, { ["-f"] = true, ["-L"] = true, ["-S"] = true })
  if cmd.args[1] == "-V" then return end
  emit("desktop_ipc", { target = "tmux", why = "tmux runs outside of the sandbox",
    user_only = not TMUX_READS[verb] })
end

-- The table -------------------------------------------------------------------------------------

local function privilege(cmd, emit)
  emit("privilege",
    { target = cmd.name, why = cmd.name .. " runs with the rights of another user" })
end

local function host_view(cmd, emit)
  emit("host_view", { target = "the host's network", why = cmd.name .. " looks at the network",
    grants = { { network_view = true } } })
end

local HANDLERS <const> = {
  systemctl = systemctl, loginctl = loginctl, hostnamectl = settings_ctl,
  timedatectl = settings_ctl, localectl = settings_ctl, busctl = busctl, gdbus = gdbus,
  nmcli = nmcli, iwctl = nmcli, coredumpctl = coredumpctl,
  resolvectl = function(_, emit) bus(emit, "system", "it asks the resolver's service") end,
  ["notify-send"] = notify_send, crontab = crontab, at = lasts, batch = lasts,
  ["systemd-run"] = systemd_run, curl = curl, wget = wget, scp = copies_out, sftp = copies_out,
  rsync = rsync, npm = node_manager, pnpm = node_manager, yarn = node_manager, bun = node_manager,
  cargo = verbs("cargo", "cargo"), gem = verbs("gem", "gem"), pip = pip, pip3 = pip,
  python = python, python3 = python, go = go, uv = uv, twine = twine, gh = gh, git = git.exits,
  niri = niri, kitty = kitty, kitten = kitty, tmux = tmux,
}

local GROUPS <const> = {
  { tables.PRIVILEGE, privilege }, { tables.RAW_NETWORK, raw_network },
  { tables.HOST, package_host }, { tables.HOST_VIEW, host_view },
  { tables.OUTSIDE_SHELLS, remote_shell }, { tables.DESKTOP, desktop },
}

-- What reports, by program: a handler of its own first, then the first group that names it.
local BY_PROGRAM <const> = {}
for i = #GROUPS, 1, -1 do
  for name in pairs(GROUPS[i][1]) do BY_PROGRAM[name] = GROUPS[i][2] end
end
for name, handler in pairs(HANDLERS) do BY_PROGRAM[name] = handler end

---Whether a program is one of those whose words say what it needs.
---@param name string?
---@return boolean
function M.knows(name)
  return name ~= nil and BY_PROGRAM[name] ~= nil
end

---Reports the exits of one command by its program.
---@param cmd table
---@param emit fun(kind: string, detail: table)
function M.exits(cmd, emit)
  local handler = BY_PROGRAM[cmd.name]
  if handler then return handler(cmd, emit) end
end

return M
