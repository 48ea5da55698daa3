-- Owns: the settings of [sandbox].
-- Must not know: how they are read.

local NAME <const> = "^[%a_*][%w_*]*$"
local NAME_SHAPE <const> = "the name of an environment variable, where * stands for any characters"

local GLOB <const> = "^!?[^/]+$"
local SURFACE <const> = "^[^/%c][^%c]*$"
local FOLDER <const> = "^[^/%c]+$"

local function no_wide_root(roots, home)
  for i, path in ipairs(roots) do
    local below = path == "/" and "/" or path .. "/"
    if (home .. "/"):sub(1, #below) == below then
      return nil, ("item %d must not be / or hold the home directory"):format(i - 1)
    end
  end
  return true
end

local function no_dots(names)
  for i, name in ipairs(names) do
    if name == "." or name == ".." then
      return nil, ("item %d must be a name without a slash"):format(i - 1)
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
      name = "backend", type = "choice", default = "auto", choices = { "auto", "native", "bwrap" },
      doc = "What builds the sandbox. auto: efr's own launcher. bwrap: bubblewrap, for systems "
        .. "where only it may make user namespaces.",
    },
    {
      name = "bwrap", type = "path", example = "/usr/bin/bwrap",
      doc = "The bubblewrap of that backend; unset: the first bwrap on PATH.",
    },
    {
      name = "write_projects", type = "choice", default = "named",
      choices = { "turn", "named", "all" },
      doc = "turn: auto asks before a shell command writes in a project that is not the turn's.",
    },
    {
      name = "write_roots", type = "list", items = { type = "path" }, default = {},
      check = no_wide_root,
      doc = "More directories that a contained command may write.",
    },
    {
      name = "caches", type = "list", items = { type = "path" },
      default = {
        "~/.cargo", "~/.rustup", "~/.cache", "~/go/pkg/mod", "~/.npm", "~/.bun/install/cache",
        "~/.local/share/pnpm/store", "~/.m2/repository", "~/.gradle/caches",
      },
      check = no_wide_root,
      doc = "Caches of tools: contained commands write there, in a layer of their own.",
    },
    {
      name = "cache_mode", type = "choice", default = "tmp",
      choices = { "tmp", "overlay", "readonly" },
      doc = "tmp: such writes vanish with the call. overlay: the conversation keeps them. "
        .. "readonly: caches cannot be written.",
    },
    {
      name = "cache_days", type = "integer", default = 14, min = 1, max = 3650,
      doc = "Kept layers of a conversation that is idle for so many days are deleted.",
    },
    {
      name = "cache_max_gib", type = "integer", default = 20, min = 1, max = 10000,
      doc = "Above this size of all kept layers the oldest are deleted.",
    },
    {
      name = "keep_downloads", type = "boolean", default = false,
      doc = "In tmp mode, keeps downloads of cargo, go, npm, bun and pnpm for the conversation.",
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
      name = "protect", type = "list", items = { type = "path" }, default = {},
      doc = "Paths that are read-only in the sandbox; auto asks before something writes there.",
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
    {
      name = "offline_hints", type = "boolean", default = true,
      doc = "Tells cargo, npm, uv and go inside that there is no network: they fail at once.",
    },
    {
      name = "max_processes", type = "integer", min = 16, max = 4194304, default = 8192,
      doc = "How many processes and threads a contained command may have.",
    },
    {
      name = "max_memory_mib", type = "integer", min = 0, max = 1073741824, default = 0,
      doc = "How much memory all processes of a contained command may have together; 0: no limit "
        .. "of efr's. Needs a cgroup that efrd may divide (efr sandbox check).",
    },
    {
      name = "max_file_gib", type = "integer", min = 0, max = 1048576, default = 0,
      doc = "How large a file may grow that a contained command writes; 0: no limit of efr's.",
    },
    {
      name = "max_open_files", type = "integer", min = 0, max = 1048576, default = 0,
      doc = "How many files a contained process may hold open; 0: no limit of efr's.",
    },
    {
      name = "promote_env", type = "list",
      default = {
        "RUST_LOG", "RUST_BACKTRACE", "NODE_ENV", "DEBUG", "CI", "NO_COLOR", "FORCE_COLOR", "TZ",
        "LANG", "LC_*",
      },
      items = { type = "string", pattern = NAME, shape = NAME_SHAPE },
      doc = "Variables that the shell takes over when a contained command exports them.",
    },
    {
      name = "export_deny", type = "list", default = {},
      items = { type = "string", pattern = NAME, shape = NAME_SHAPE },
      doc = "Variables that it never takes over.",
    },
    {
      name = "synced_dirs", type = "list", items = { type = "path" },
      default = { "~/Dropbox", "~/Nextcloud", "~/Sync", "~/OneDrive", "~/MEGA" },
      doc = "Directories that other machines see: a write there, but for projects, asks you.",
    },
    {
      name = "ask_destructive", type = "choice", default = "unless_undoable",
      choices = { "unless_undoable", "always" },
      doc = "unless_undoable: in auto, deleting files that efr undo can bring back asks nobody.",
    },
    {
      name = "surface_files", type = "list",
      items = { type = "string", pattern = SURFACE, shape = "a name, or the end of a path" },
      default = {
        "Makefile", "build.rs", "package.json", ".envrc", "rust-toolchain.toml", "justfile", "*.mk",
        "CMakeLists.txt", "setup.py", "pyproject.toml", "conftest.py", ".vscode/tasks.json",
        ".nvim.lua", ".exrc", ".mise.toml", ".tool-versions", "flake.nix",
        ".pre-commit-config.yaml", ".cargo/config.toml", ".cargo/config", ".npmrc",
        ".yarnrc.yml", ".pnpmfile.cjs",
      },
      doc = "Files that run code later: a turn names those that its commands changed.",
    },
    {
      name = "rebuildable", type = "list",
      items = { type = "string", pattern = FOLDER, shape = "a name without a slash" },
      default = { "target", "node_modules", "dist", "build", ".venv" },
      check = no_dots,
      doc = "Names of directories that a build makes anew: auto may delete them with no question.",
    },
    {
      name = "allow", type = "allow", default = {},
      doc = "What auto opens for a command with no question, one table [[sandbox.allow]] each.",
    },
  },
}
