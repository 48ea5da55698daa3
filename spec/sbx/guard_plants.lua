-- For each rule of the surface guard: what a command can do that breaks it (lines of sh, run in the
-- project), the paths that are then named, and for settings the key. `before`: what stands there
-- before the call. `max_entries`: a smaller limit. `removed`: the line
-- takes away what stood there. What stood there before comes back. A rule without an example fails the spec.
local CONFIG <const> = "sub/.git/config"
local NESTED <const> = "git init -q sub"

return {
  commondir_in_main_git_dir = {
    { line = "echo /tmp >.git/commondir", paths = { ".git/commondir" } },
    { line = "ln -s x .git/commondir", paths = { ".git/commondir" } },
    { line = "mkfifo .git/commondir", paths = { ".git/commondir" } },
    { line = "mkdir .git/commondir", paths = { ".git/commondir" } },
    { line = "git init -q sub; echo ../../.git >sub/.git/commondir",
      paths = { "sub/.git/commondir" } },
    { before = "echo a >.git/commondir", line = "echo b >.git/commondir",
      paths = { ".git/commondir" } },
    { before = "git init -q --bare .git/modules/m",
      line = "echo /tmp >.git/modules/m/commondir", paths = { ".git/modules/m/commondir" } },
    { line = "cp -r .git bare && echo /tmp >bare/commondir", paths = { "bare/commondir" } },
    { line = "mkdir -p dd data/objects data/refs; echo ref: refs/heads/x >dd/HEAD; "
        .. "echo ../data >dd/commondir; git config -f data/config alias.zz '!evil'",
      paths = { "dd/commondir" } },
    { line = "mkdir -p w/worktrees/dd data/objects data/refs; "
        .. "echo ref: refs/heads/x >w/worktrees/dd/HEAD; echo ../../../data >w/worktrees/dd/commondir",
      paths = { "w/worktrees/dd/commondir" } },
  },
  config_worktree_appeared = {
    { line = "echo >.git/config.worktree", paths = { ".git/config.worktree" } },
    { before = NESTED, line = "echo >sub/.git/config.worktree",
      paths = { "sub/.git/config.worktree" } },
  },
  worktree_commondir_elsewhere = {
    { before = "git worktree add -q ../tree", line = "echo /tmp >.git/worktrees/tree/commondir",
      paths = { ".git/worktrees/tree/commondir" } },
    { before = "git worktree add -q ../tree",
      line = "printf '../..\\n/tmp\\n' >.git/worktrees/tree/commondir",
      paths = { ".git/worktrees/tree/commondir" } },
    { before = "git worktree add -q ../tree", line = "cd .git/worktrees/tree; rm commondir; "
        .. "mkdir objects refs; printf '[core]\\n\\tfsmonitor = x\\n' >config",
      paths = { ".git/worktrees/tree/commondir" }, removed = true },
  },
  worktree_gitdir_elsewhere = {
    { before = "git worktree add -q tree", line = "echo /etc/.git >.git/worktrees/tree/gitdir",
      paths = { ".git/worktrees/tree/gitdir" } },
    { before = "git worktree add -q tree; mkdir d; echo 'gitdir: x' >d/.git",
      line = "echo \"$PWD/d/.git\" >.git/worktrees/tree/gitdir",
      paths = { ".git/worktrees/tree/gitdir" } },
    { before = "git worktree add -q tree", line = "rm .git/worktrees/tree/gitdir",
      paths = { ".git/worktrees/tree/gitdir" }, removed = true },
  },
  git_dir_elsewhere = {
    { line = "mkdir sub; echo 'gitdir: /tmp/x' >sub/.git", paths = { "sub/.git" } },
    { line = "mkdir sub; ln -s /tmp sub/.git", paths = { "sub/.git" } },
    { before = "git init -q --bare ../out; git init -q --separate-git-dir=gd sub",
      line = "echo 'gitdir: ../../out' >sub/.git", paths = { "sub/.git" } },
  },
  worktree_config_worktree_appeared = {
    { before = "git worktree add -q ../tree",
      line = "echo >.git/worktrees/tree/config.worktree",
      paths = { ".git/worktrees/tree/config.worktree" } },
  },
  config_code_key = {
    { before = NESTED, line = "git -C sub config core.fsmonitor ./evil", paths = { CONFIG },
      key = "core.fsmonitor" },
    { line = "git init -q sub; git -C sub config filter.x.clean evil", paths = { CONFIG },
      key = "filter.x.clean" },
    { line = "git init -q a/b/c; git -C a/b/c config alias.st '!evil'",
      paths = { "a/b/c/.git/config" }, key = "alias.st" },
    { line = "git init -q --bare x; git -C x config core.sshCommand evil", paths = { "x/config" },
      key = "core.sshcommand" },
    { line = "mv .git/HEAD .git/H; echo ref: refs/heads/x >HEAD; mkdir objects refs; "
        .. "printf '[core]\\n\\tfsmonitor = ./evil\\n' >config", paths = { "config" },
      key = "core.fsmonitor" },
    { before = NESTED .. "; git -C sub config core.pager less",
      line = "git -C sub config core.pager evil", paths = { CONFIG }, key = "core.pager" },
    { before = NESTED .. "; git -C sub config include.path ../../more; : >more",
      line = "printf '[core]\\n\\teditor = evil\\n' >more", paths = { "more" },
      key = "core.editor" },
    { before = NESTED .. "; git -C sub config include.path ../../more",
      line = "printf '[core]\\n\\teditor = evil\\n' >more", paths = { "more" },
      key = "core.editor" },
    { before = "git init -q --separate-git-dir=gd sub",
      line = "printf '[core]\\n\\teditor = evil\\n' >>gd/config", paths = { "gd/config" },
      key = "core.editor" },
    { line = "mkdir sub gd; git init -q --bare gd; echo 'gitdir: ../gd' >sub/.git; "
        .. "git -C gd config core.editor evil", paths = { "gd/config" }, key = "core.editor" },
    { line = "git init -q gd; mkdir sub; ln -s ../gd/.git sub/.git; "
        .. "git -C gd config core.editor evil", paths = { "gd/.git/config" },
      key = "core.editor" },
  },
  config_unreadable = {
    { before = NESTED, line = "echo '[broken' >sub/.git/config", paths = { CONFIG } },
    { before = NESTED, line = "rm sub/.git/config; ln -s ../../evil sub/.git/config",
      paths = { CONFIG } },
    { before = NESTED, line = "rm sub/.git/config; mkfifo sub/.git/config", paths = { CONFIG } },
    { before = NESTED, line = "head -c 300000 /dev/zero | tr '\\0' '#' >>sub/.git/config",
      paths = { CONFIG } },
    { line = "ln -s /tmp .git/modules", paths = { ".git/modules" } },
    { before = "git init -q --bare .git/modules/m", line = "ln -s m .git/modules/n",
      paths = { ".git/modules/n" } },
    { line = "ln -s /tmp .git/worktrees", paths = { ".git/worktrees" } },
  },
  commondir_outside_repo = {
    { line = "mkdir sub gd; git init -q --bare gd; echo 'gitdir: ../gd' >sub/.git; "
        .. "echo /tmp >gd/commondir", paths = { "gd/commondir" } },
    { before = "git worktree add -q tree; mkdir -p other/worktrees; "
        .. "mv .git/worktrees/tree other/worktrees/t; "
        .. "printf 'gitdir: ../other/worktrees/t\\n' >tree/.git",
      line = "echo ../../../.git >other/worktrees/t/commondir",
      paths = { "other/worktrees/t/commondir" } },
  },
  hook_planted = {
    { before = "rm -rf .git/hooks", line = "mkdir .git/hooks; echo evil >.git/hooks/pre-commit",
      paths = { ".git/hooks/pre-commit" } },
    { before = NESTED, line = "echo evil >sub/.git/hooks/post-checkout; : >sub/.git/hooks/a.sample",
      paths = { "sub/.git/hooks/post-checkout" } },
    { before = NESTED .. "; echo fine >sub/.git/hooks/pre-push",
      line = "chmod +x sub/.git/hooks/pre-push", paths = { "sub/.git/hooks/pre-push" } },
    { before = NESTED .. "; echo fine >sub/.git/hooks/pre-push",
      line = "echo evil >>sub/.git/hooks/pre-push", paths = { "sub/.git/hooks/pre-push" } },
    { before = NESTED, line = "ln -s /bin/ls sub/.git/hooks/pre-push",
      paths = { "sub/.git/hooks/pre-push" } },
    { before = NESTED, line = "rm -rf sub/.git/hooks; mkdir h; ln -s ../../h sub/.git/hooks",
      paths = { "sub/.git/hooks" } },
    { before = NESTED .. "; rm -rf sub/.git/hooks; mkdir h; ln -s ../../h sub/.git/hooks",
      line = "echo evil >h/pre-commit", paths = { "h/pre-commit" } },
    { before = NESTED .. "; mkdir sub/.githooks; git -C sub config core.hooksPath .githooks",
      line = "echo evil >sub/.githooks/pre-commit", paths = { "sub/.githooks/pre-commit" } },
    { before = "mkdir a b; git init -q a; echo fine >a/.git/hooks/pre-push",
      line = "mv a b/; echo evil >b/a/.git/hooks/pre-commit",
      paths = { "b/a/.git/hooks/pre-commit" } },
  },
  module_code_key = {
    { before = "git init -q --bare .git/modules/m", key = "core.fsmonitor",
      line = "git -C .git/modules/m config core.fsmonitor evil",
      paths = { ".git/modules/m/config" } },
    { before = "git init -q --bare .git/modules/a/modules/b/modules/c", key = "core.fsmonitor",
      line = "git -C .git/modules/a/modules/b/modules/c config core.fsmonitor evil",
      paths = { ".git/modules/a/modules/b/modules/c/config" } },
    { line = "git init -q --bare .git/modules/dir/m; "
        .. "git -C .git/modules/dir/m config core.fsmonitor evil", key = "core.fsmonitor",
      paths = { ".git/modules/dir/m/config" } },
  },
  module_hook = {
    { before = "git init -q --bare .git/modules/m",
      line = "echo evil >.git/modules/m/hooks/pre-commit",
      paths = { ".git/modules/m/hooks/pre-commit" } },
  },
  alternates_changed = {
    { line = "mkdir -p .git/objects/info; echo /tmp >.git/objects/info/alternates",
      paths = { ".git/objects/info/alternates" } },
    { before = NESTED, line = "echo /tmp >sub/.git/objects/info/alternates",
      paths = { "sub/.git/objects/info/alternates" } },
  },
  protected_name_created = {
    { line = "mkdir .claude .vscode; : >.mcp.json; mkdir -p deep/.cursor",
      paths = { ".claude", ".mcp.json", ".vscode" } },
    { before = NESTED, line = ": >sub/.envrc", paths = { "sub/.envrc" } },
  },
  too_much_to_check = {
    { line = "mkdir many; cd many; seq 301 | xargs touch", paths = { "" }, max_entries = 300 },
  },
}
