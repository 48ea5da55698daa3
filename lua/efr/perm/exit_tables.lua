-- Owns: the words of programs that make a command leave the sandbox, as data.
-- Must not know: how a command is read (exit_programs) or who decides an exit.
-- Runs in efrd and efr. Data.

local list = require "efr.util.list"

local set <const> = list.set

local M = {}

-- Programs that are one kind whatever their arguments say.
M.PRIVILEGE = set {
  "sudo", "sudoedit", "doas", "su", "pkexec", "run0", "yay", "paru", "pikaur", "aura", "docker",
  "podman", "machinectl", "nsenter", "passwd", "chsh", "chfn", "newgrp", "dbus-send",
}
-- With a network of their own kind: no proxy serves them.
M.RAW_NETWORK = set {
  "nslookup", "dig", "host", "drill", "ping", "ping6", "traceroute", "tracepath", "mtr", "nc",
  "ncat", "netcat", "socat", "telnet", "ftp", "ztcp", "zftp",
}
M.HOST = set {
  "checkupdates", "npx", "bunx", "pnpx", "uvx", "pipx", "aria2c", "yt-dlp", "kubectl",
}
-- The presets whose hosts these use.
M.PRESETS = {
  checkupdates = "@system", npx = "@npm", bunx = "@npm", pnpx = "@npm", uvx = "@pypi",
  pipx = "@pypi",
}
M.HOST_VIEW = set { "ss", "ip", "iw", "netstat", "ifconfig" }
M.OUTSIDE_SHELLS = set { "ssh", "mosh", "autossh" }
M.DESKTOP = set {
  "xrandr", "swaymsg", "i3-msg", "hyprctl", "wlr-randr", "xdotool", "ydotool", "wtype", "wmctrl",
  "xprop", "xset", "xdpyinfo", "xclip", "xsel", "scrot", "wl-copy", "wl-paste", "grim", "slurp",
}
-- Desktop programs that type, press or start something whatever their arguments say.
M.DESKTOP_ACTS = set { "xdotool", "ydotool", "wtype" }

-- systemd and its friends ------------------------------------------------------------------------

M.SYSTEMCTL_READS = set {
  "list-units", "list-unit-files", "list-sockets", "list-timers", "list-paths", "list-jobs",
  "list-dependencies", "list-automounts", "list-machines", "status", "show", "cat", "help",
  "is-active", "is-failed", "is-enabled", "is-system-running", "get-default", "show-environment",
}
M.SYSTEMCTL_PERSISTS = set {
  "enable", "disable", "reenable", "link", "edit", "set-environment", "unset-environment",
  "import-environment", "preset", "preset-all", "mask", "unmask", "add-wants", "add-requires",
  "set-property", "revert", "set-default",
}
-- Only the user decides these.
M.SYSTEMCTL_USER_ONLY = set {
  "link", "edit", "revert", "set-environment", "unset-environment", "import-environment",
  "set-default", "preset", "preset-all", "add-wants", "add-requires", "set-property",
}
M.LOGINCTL_READS = set {
  "list-sessions", "list-users", "list-seats", "session-status", "user-status", "seat-status",
  "show-session", "show-user", "show-seat",
}
-- Read forms that the bus filter serves (tables.md 2).
M.FILTERED_SYSTEMCTL = set {
  "list-units", "list-unit-files", "list-timers", "list-sockets", "status", "show", "is-active",
  "is-enabled", "is-failed",
}
M.FILTERED_CTL = set { "status", "show" }
M.BUS_PLACES = set {
  "-H", "--host", "-M", "--machine", "--root", "--image", "--image-policy",
}
M.NMCLI_READS = set { "show", "list", "status", "-g", "--get-values" }
M.COREDUMPCTL = set { "info", "debug", "gdb", "dump" }
M.BUS_CALLS = set { "call", "set-property", "emit" }

-- Sending ---------------------------------------------------------------------------------------

M.GIT_UPLOADS = set { "push", "send-email", "send-pack" }
M.GIT_HOST = set { "fetch", "pull", "clone", "ls-remote", "fetch-pack" }
M.GIT_REMOTE = set { "update", "prune", "show" }
M.GIT_SUBMODULE = set { "update", "sync" }
M.GIT_VALUES = set {
  "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env",
  "--super-prefix",
}
-- Options of git that choose code or another repository.
M.GIT_CODE = {
  "-c", "--config-env", "--exec-path", "--git-dir", "--work-tree", "--namespace", "--receive-pack",
  "--exec", "--upload-pack", "--template", "--to-cmd", "--cc-cmd", "--header-cmd",
  "--sendmail-cmd", "--smtp-server",
}
M.GIT_CLONE_CODE = { "-u", "-c", "--config", "--template", "--recurse-submodules" }

M.NODE = set { "npm", "pnpm", "yarn", "bun" }
M.NODE_FETCHES = set {
  "install", "i", "in", "ci", "clean-install", "add", "update", "up", "upgrade", "outdated", "view",
  "info", "show", "audit", "exec", "x", "dlx", "dedupe", "install-test", "it", "login", "search",
  "create", "fetch", "import",
}
M.VERBS = {
  cargo = {
    preset = "@crates",
    upload = set { "publish", "yank", "owner" },
    host = set { "fetch", "update", "install", "search", "add", "login", "generate-lockfile" },
  },
  gem = { upload = set { "push" }, host = set { "install", "update", "fetch" } },
  pip = {
    preset = "@pypi", upload = set {},
    host = set { "install", "download", "wheel", "index", "search" },
  },
}
M.GO_MOD = set { "download", "tidy", "vendor" }
M.UV = set { "sync", "add", "lock", "remove" }
M.UV_GROUPS = set { "pip", "tool", "python" }
M.UV_GROUP_VERBS = set { "install", "run", "upgrade", "sync" }
M.TWINE = set { "upload", "register" }
M.GH_WRITES = {
  release = set { "create", "upload", "edit", "delete" },
  pr = set { "create", "merge", "comment", "edit", "review", "close" },
  issue = set { "create", "comment", "edit", "close" },
  gist = set { "create", "edit" },
  repo = set { "create", "fork", "edit", "delete", "sync" },
}
-- Long options stand with every abbreviation that names them; the form of matching.hits.
M.GH_API_WRITES = {
  "-f", "-F", "-X", "--field", "--raw-field", "--input", "--method",
}
M.CURL_DATA = {
  "-d", "-F", "-T", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode",
  "--form", "--form-string", "--upload-file", "--json", "--url-query",
}
M.METHODS = set { "POST", "PUT", "PATCH", "DELETE" }
M.WGET_DATA = { "--post-data", "--post-file", "--body-data", "--body-file" }

-- Options of ssh and mosh that lead elsewhere or run something.
M.SSH_REDIRECTS = { "-F", "-J", "-W" }
M.SSH_KEYS = {
  "proxycommand", "proxyjump", "hostname", "localcommand", "permitlocalcommand",
  "knownhostscommand", "match", "include",
}
M.MOSH_REDIRECTS = { "--ssh", "--client" }
M.SSH_VALUES = set {
  "-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p",
  "-Q", "-R", "-S", "-W", "-w",
}
-- Variables that choose what a program connects to or runs.
M.REMOTE_VARIABLES = { "^GIT_", "^SSH_", "^AUTOSSH_", "^HOME$", "^XDG_CONFIG_HOME$", "^PATH$",
  "^RSYNC_RSH$" }

-- Devices that every sandbox has; also everything below pts, shm, fd and mqueue.
M.DEVICES = set {
  "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "stdin", "stdout",
  "stderr", "core",
}
M.DEVICE_DIRS = set { "pts", "shm", "fd", "mqueue" }

return M
