-- Data: what the surface guard looks for after a call, rule by rule: what a change is called, what
-- it means in words, and whether the file is moved to quarantine.

return {
  {
    name = "commondir_in_main_git_dir", quarantine = true,
    words = "git would take its settings from another directory",
  },
  {
    name = "config_worktree_appeared", quarantine = true, words = "a second file of git settings",
  },
  {
    name = "worktree_commondir_elsewhere", quarantine = true,
    words = "a worktree would take git settings from elsewhere",
  },
  {
    name = "worktree_gitdir_elsewhere", quarantine = true,
    words = "git would take another directory for a worktree",
  },
  {
    name = "git_dir_elsewhere", quarantine = true,
    words = "git would take its settings from a place that efr does not look at",
  },
  {
    name = "worktree_config_worktree_appeared", quarantine = true,
    words = "a worktree has git settings of its own",
  },
  { name = "config_code_key", quarantine = true, words = "git would run a program" },
  { name = "config_unreadable", quarantine = true, words = "git settings that efr cannot read" },
  {
    name = "commondir_outside_repo", quarantine = true,
    words = "git would take its settings from outside the repository",
  },
  { name = "hook_planted", quarantine = true, words = "git would run this hook" },
  {
    name = "module_code_key", quarantine = true, words = "git would run a program in a submodule",
  },
  { name = "module_hook", quarantine = true, words = "git would run this hook in a submodule" },
  {
    name = "alternates_changed", quarantine = false,
    words = "git would take objects from another place",
  },
  {
    name = "protected_name_created", quarantine = false,
    words = "a tool or an agent may run what is in it",
  },
  {
    name = "too_much_to_check", quarantine = false,
    words = "there is more, or it is deeper, than efr looks at",
  },
}
