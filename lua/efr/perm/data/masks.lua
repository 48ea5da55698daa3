-- Owns: the places of the home directory and the system that the sandbox hides although they are no
-- engine secrets.
-- Must not know: how they are hidden (sbx.masks), who may read them.
-- Data; runs nowhere.

return {
  -- Below the home directory.
  stores = {
    ".aws", ".kube", ".docker", ".codex", ".claude/.credentials.json", ".local/share/opencode",
    ".config/op", ".config/rclone", ".config/containers/auth.json", ".local/share/kwalletd", ".pki",
    ".Xauthority", ".gradle/gradle.properties", ".m2/settings.xml", ".config/Bitwarden",
    ".config/1Password", ".config/KeePassXC",
  },
  tool_credentials = {
    ".config/git/credentials", ".git-credential-cache", ".cache/git/credential",
    ".nuget/NuGet/NuGet.Config", ".composer/auth.json", ".config/composer/auth.json",
    ".bundle/config", ".config/pypoetry/auth.toml", ".condarc", ".sbt/.credentials",
    ".ivy2/.credentials", ".m2/settings-security.xml",
  },
  profiles = {
    ".mozilla", ".librewolf", ".zen", ".thunderbird", ".var/app", ".config/chromium",
    ".config/google-chrome", ".config/BraveSoftware", ".config/vivaldi", ".config/Signal",
    ".config/discord", ".config/Slack", ".local/share/TelegramDesktop", ".cache/mozilla",
    ".cache/chromium", ".cache/google-chrome",
  },
  histories = {
    ".zsh_history", ".bash_history", ".local/share/fish/fish_history", ".python_history",
    ".node_repl_history",
  },
  -- Absolute; the last part may hold one star.
  container = { "/run/secrets", "/var/run/secrets" },
}
