-- The machine of the permission specs.
return function(changes)
  local machine = {
    home = "/home/u",
    aliases = { "/var/home/u" },
    scratch = "/home/u/.local/share/efr/scratch/2026-01-01-x-abc",
    config_roots = { "/home/u/.config/efr", "/srv/conf" },
    secrets_dir = "/home/u/.local/share/efr/secrets",
    secret_paths = { "/home/u/keys", "/opt/vault" },
    write_sealed = { "/home/u/.config/efr", "/home/u/dotfiles/efr.toml" },
    masks = { "/home/u/.mozilla", "/home/u/p/app/.env" },
  }
  for key, value in pairs(changes or {}) do machine[key] = value end
  return machine
end
