-- Owns: the settings of [permissions].
-- Must not know: how they are read.

local function check(values)
  if values["permissions.mode"] == "full" and not values["permissions.allow_full"] then
    return "permissions.mode", "is full, which needs permissions.allow_full = true"
  end
  return nil
end

return {
  name = "permissions",
  check = check,
  doc = "What runs at once and what asks.",
  keys = {
    {
      name = "mode", type = "choice", default = "cautious",
      choices = { "manual", "cautious", "auto", "full" },
      doc = "manual: everything asks. cautious: reads and writes below the project run. " ..
        "auto: shell commands run in the sandbox. full: no sandbox and no questions but for " ..
        "deletes; needs allow_full.",
    },
    {
      name = "secret_paths", type = "list", items = { type = "path" }, default = {},
      doc = "More paths that no tool reads or writes, with everything below them.",
    },
    {
      name = "allow_full", type = "boolean", default = false,
      doc = "Whether the mode full may be used at all.",
    },
    {
      name = "rules", type = "rules", default = {},
      doc = "Rules of your own, one table [[permissions.rules]] each.",
    },
  },
}
