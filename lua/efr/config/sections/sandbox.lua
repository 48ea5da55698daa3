-- Owns: the settings of [sandbox].
-- Must not know: how they are read.

local NAME <const> = "^[%a_*][%w_*]*$"
local NAME_SHAPE <const> = "the name of an environment variable, where * stands for any characters"

local GLOB <const> = "^!?[^/]+$"

local function no_wide_root(roots, home)
  for i, path in ipairs(roots) do
    local below = path == "/" and "/" or path .. "/"
    if (home .. "/"):sub(1, #below) == below then
      return nil, ("item %d must not be / or hold the home directory"):format(i - 1)
    end
  end
  return true
end

return {
  name = "sandbox",
  doc = "What a contained command may see and write.",
  keys = {
    {
      name = "enabled", type = "boolean", default = true,
      doc = "false: there is no sandbox, and auto runs as cautious.",
    },
    {
      name = "write_roots", type = "list", items = { type = "path" }, default = {},
      check = no_wide_root,
      doc = "More directories that a contained command may write.",
    },
    {
      name = "mask", type = "list", items = { type = "path" }, default = {},
      doc = "More paths that are empty inside the sandbox; a file tool asks before it reads one.",
    },
    {
      name = "mask_globs", type = "list",
      items = { type = "string", pattern = GLOB, shape = "a name without a slash" },
      default = { ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template" },
      doc = "Names of files in projects that are hidden in the same way; ! keeps one readable.",
    },
    {
      name = "env_deny", type = "list", default = {},
      items = { type = "string", pattern = NAME, shape = NAME_SHAPE },
      doc = "More environment variables that a contained command does not get.",
    },
    {
      name = "env_keep", type = "list", default = {},
      items = { type = "string", pattern = NAME, shape = NAME_SHAPE },
      doc = "Variables that a contained command gets although their names look secret.",
    },
  },
}
