-- Which fix each known reason gets.
require "spec.helper"
local problems = require "efr.sbx.problems"

describe("sbx.problems", function()
  local CLONE <const> = "namespaces: user namespaces are refused here (...): Operation not permitted"
  local ROWS <const> = {
    { "disabled", "sandbox.enabled is false" },
    { "bubblewrap", "bubblewrap: it is not installed" },
    { "bubblewrap", "bubblewrap: version 0.8.0 lacks --bind-fd (0.10.0 has all)" },
    { "bubblewrap", "bubblewrap: /home/u/bwrap does not belong to root" },
    { "AppArmor", "bubblewrap: setting up uid map: Permission denied",
      { ["kernel/apparmor_restrict_unprivileged_userns"] = "1\n" } },
    { "container", "bubblewrap: No permissions to create new namespace, likely because ..." },
    { "userns off", CLONE, { ["kernel/unprivileged_userns_clone"] = "0\n" } },
    { "AppArmor", CLONE, { ["kernel/apparmor_restrict_unprivileged_userns"] = "1\n" } },
    { "AppArmor", "identity: write /proc/self/uid_map: Operation not permitted",
      { ["kernel/apparmor_restrict_unprivileged_userns"] = "1\n" } },
    { "AppArmor", "read-only root: mount: Permission denied",
      { ["kernel/apparmor_restrict_unprivileged_userns"] = "1\n" } },
    { "no namespaces left", "namespaces: the limit of namespaces is reached (...): No space left",
      { ["user/max_user_namespaces"] = "0\n" } },
    { "limit of namespaces", "namespaces: the limit of namespaces is reached (...): No space left",
      { ["user/max_user_namespaces"] = "15000\n" } },
    { "container", CLONE, { ["kernel/unprivileged_userns_clone"] = "1\n" } },
    { "container", "proc: mount: Operation not permitted" },
    { "Landlock off", "landlock: Landlock is off or too old (ABI 0, 2 is needed: ...)" },
    { "Landlock off", "landlock: Landlock is off or too old (ABI -1, 2 is needed: ...)" },
    { "Landlock old", "landlock: Landlock is off or too old (ABI 1, 2 is needed: ...)" },
    { "Landlock old", "landlock: enter: Function not implemented" },
    { "Yama", "self-test: own_socket: EPERM", { ["kernel/yama/ptrace_scope"] = "3\n" } },
    { "broker", "self-test: own_socket: EPERM", { ["kernel/yama/ptrace_scope"] = "1\n" } },
    { "leak", "self-test: unix_socket: it worked" },
    { "no answer", "launch: no answer in 5 s" },
    { "launcher in a project", "the launcher /p/efr-sbx lies in the project /p, where a ..." },
    { "launcher changed", "the launcher's copy /run/bin/efr-sbx was changed" },
    { "launcher copy missing", "the launcher's copy /run/bin/efr-sbx is missing: ENOENT" },
    { "noexec", "the launcher cannot be executed in /a or /b: both are noexec" },
    { "launcher missing", "efr-sbx is not installed beside efrd" },
    { "launcher owner", "the launcher /x belongs to somebody else or can be written by others" },
    { "below /tmp", "roots: the state root /tmp/x lies below /tmp, which every call has for itself" },
    { "PATH", "plan: PATH has an empty or relative entry: clean it and try again" },
    { "zsh", "zsh is not installed" },
    { "write root", "plan: /home cannot be a write root: it is or holds the home directory" },
  }

  local used = {}
  for _, row in ipairs(ROWS) do
    used[row[1]] = true
    it(row[1] .. ": " .. row[2], function()
      local fix, name = problems.fix(row[2], function(path)
        return (row[3] or {})[path:gsub("^/proc/sys/", "")]
      end)
      assert.equal(row[1], name)
      assert.is_string(fix)
    end)
  end

  it("has a case for each row of the table", function()
    for _, problem in ipairs(problems.TABLE) do
      assert.is_true(used[problem.name], problem.name)
    end
  end)

  it("knows nothing of other reasons", function()
    assert.is_nil(problems.fix("pid 1: it ended without a report", function() return nil end))
  end)
end)
