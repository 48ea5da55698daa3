-- Owns: the known reasons for which the sandbox cannot be used here, and what mends each.
-- Must not know: how a reason was found.
-- Runs in efrd and efr. Pure but for `read`, which gives a file of /proc/sys.
--
-- The first row whose pattern is in the reason, and whose `when` holds, gives the fix. A reason of
-- the launcher begins with its step (docs/protocol.md).

local M = {}

local function is(name, value)
  return function(read)
    local text = read("/proc/sys/" .. name)
    return text ~= nil and text:match("^%s*(.-)%s*$") == value
  end
end

local DENIED <const> = { "Permission denied", "Operation not permitted", "No permissions to" }
-- Steps of a launch that need what AppArmor takes away from a new user namespace.
local EARLY_STEPS <const> = {
  "bubblewrap", "namespaces", "identity", "network", "read-only root", "mount sources", "devices",
  "pool", "proc", "mounts",
}

local function denied_early(reason)
  local step = reason:match("^([^:]+): ")
  local early, denied = false, false
  for _, name in ipairs(EARLY_STEPS) do early = early or step == name end
  for _, words in ipairs(DENIED) do denied = denied or reason:find(words, 1, true) ~= nil end
  return early and denied
end

---@class efr.sbx.Problem
---@field name string
---@field pattern string?  Lua pattern in the reason
---@field one_of string[]?  words of which one is in the reason
---@field early boolean?  a step of the launch was denied
---@field when (fun(read: fun(path: string): string?): boolean)?
---@field fix string

---@type efr.sbx.Problem[]
M.TABLE = {
  {
    name = "disabled", pattern = "^sandbox%.enabled is false",
    fix = "efr config set sandbox.enabled true",
  },
  {
    name = "bubblewrap", pattern = "^bubblewrap: ",
    one_of = {
      "is not installed", " lacks ", "does not tell its version", "does not belong to root",
      "can be changed by others", "has rights of its own", "is not a program",
      "No such file or directory", "no answer",
    },
    fix = "install or update the distribution's unprivileged bubblewrap, or take sandbox.backend "
      .. "and sandbox.bwrap out of config.toml",
  },
  {
    name = "userns off", early = true, when = is("kernel/unprivileged_userns_clone", "0"),
    fix = "allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1, and the same "
      .. "line in a file of /etc/sysctl.d",
  },
  {
    name = "no namespaces left", pattern = "^namespaces: ",
    when = is("user/max_user_namespaces", "0"),
    fix = "allow user namespaces: sudo sysctl -w user.max_user_namespaces=15000, and the same line "
      .. "in a file of /etc/sysctl.d",
  },
  {
    name = "AppArmor", early = true, when = is("kernel/apparmor_restrict_unprivileged_userns", "1"),
    fix = "give efr-sbx an AppArmor profile with `userns,`, or set sandbox.backend = \"bwrap\" "
      .. "where bubblewrap has one, or: sudo sysctl -w "
      .. "kernel.apparmor_restrict_unprivileged_userns=0",
  },
  {
    name = "limit of namespaces", pattern = "^namespaces: the limit of namespaces",
    fix = "raise user.max_user_namespaces (and user.max_net_namespaces, max_mnt_namespaces, ...) "
      .. "with sysctl",
  },
  {
    name = "container", early = true,
    fix = "the container or its profile refuses user namespaces or mounts inside of them: start it "
      .. "with a seccomp profile and an AppArmor profile that let them through, or run efr outside",
  },
  {
    name = "Landlock off", pattern = "^landlock: .*%(ABI [0-]",
    fix = "boot with Landlock: lsm=landlock,... on the kernel's command line; it needs Linux 5.19",
  },
  {
    name = "Landlock old", pattern = "^landlock: ",
    fix = "a newer kernel: Linux 5.19 or later, with Landlock among the modules of lsm=",
  },
  {
    name = "Yama", pattern = "own_socket", when = is("kernel/yama/ptrace_scope", "3"),
    fix = "the socket broker needs kernel.yama.ptrace_scope 0, 1 or 2; 3 stays until the next boot",
  },
  {
    name = "broker", pattern = "own_socket",
    fix = "the kernel refuses the socket broker: it needs pidfd_getfd and seccomp notifications",
  },
  {
    name = "leak", pattern = "^self%-test: ",
    fix = "a guarantee does not hold on this machine; please report it with the output of "
      .. "efr sandbox check --json",
  },
  {
    name = "no answer", pattern = "no answer in",
    fix = "something that the step needs does not answer: look for a dead network or FUSE mount "
      .. "among the places that a call writes, then: efr sandbox check",
  },
  {
    name = "launcher in a project", pattern = "the launcher .* lies in ",
    fix = "install efr outside of it (./dev install), then restart efrd",
  },
  {
    name = "launcher changed", pattern = "the launcher's copy .* was changed",
    fix = "restart efrd, which makes a new copy; if nobody you know changed it, look who did",
  },
  {
    name = "launcher copy missing", pattern = "the launcher's copy .* is missing",
    fix = "restart efrd, which makes a new copy",
  },
  {
    name = "noexec", pattern = "cannot be executed",
    fix = "set EFR_RUNTIME_DIR to a private directory on a file system without noexec",
  },
  {
    name = "launcher missing", pattern = "efr%-sbx is not installed",
    fix = "install efr again, then restart efrd",
  },
  {
    name = "launcher owner", pattern = "^the launcher ",
    fix = "install efr again as yourself or as root, then restart efrd",
  },
  {
    name = "below /tmp", pattern = "lies below /",
    fix = "move it: set EFR_HOME (or EFR_STATE_DIR, EFR_DATA_DIR, EFR_RUNTIME_DIR) elsewhere",
  },
  {
    name = "PATH", pattern = "PATH has an empty or relative entry",
    fix = "take the empty or relative entry out of PATH in your shell's startup files, then "
      .. "restart efrd",
  },
  { name = "zsh", pattern = "zsh is not installed", fix = "install zsh" },
  {
    name = "write root", pattern = "cannot be a write root",
    fix = "change sandbox.write_roots, sandbox.mask or the project it names",
  },
}

local function has_one(words, reason)
  for _, word in ipairs(words) do
    if reason:find(word, 1, true) then return true end
  end
  return false
end

local function fits(row, reason, read)
  if row.pattern and not reason:find(row.pattern) then return false end
  if row.one_of and not has_one(row.one_of, reason) then return false end
  if row.early and not denied_early(reason) then return false end
  return not row.when or row.when(read)
end

---What mends a reason.
---@param reason string
---@param read fun(path: string): string?  a small file's text
---@return string? fix  nil when the reason is none of the known ones
---@return string? name  of the row
function M.fix(reason, read)
  for _, row in ipairs(M.TABLE) do
    if fits(row, reason, read) then return row.fix, row.name end
  end
  return nil
end

return M
