-- Owns: what efr knows about programs that use the network, wait for a person, or ask for a
-- password. Form: efr.perm.programs.
-- Must not know: how a line is read.
-- Data; runs nowhere.

local ALWAYS <const> = { network = "always" }
local NODE <const> = { network = "node" }
local TERMINAL <const> = { interactive = true }
local PROMPTS <const> = { network = "always", prompts = true }

return {
  ssh = { network = "always", interactive = true, operands = "read" },
  sftp = { network = "always", interactive = true, prompts = true },
  ftp = { network = "always", interactive = true },
  telnet = { network = "always", interactive = true },
  scp = { network = "always", prompts = true, special = "copy" },
  nc = ALWAYS, ncat = ALWAYS, ping = ALWAYS, dig = ALWAYS, nslookup = ALWAYS, host = ALWAYS,
  yay = ALWAYS, paru = ALWAYS, apt = ALWAYS, ["apt-get"] = ALWAYS, dnf = ALWAYS,
  zypper = ALWAYS, brew = ALWAYS, pip = ALWAYS, pip3 = ALWAYS, pipx = ALWAYS, npx = ALWAYS,
  docker = ALWAYS, podman = ALWAYS, flatpak = ALWAYS, snap = ALWAYS,
  npm = NODE, pnpm = NODE, yarn = NODE,
  pacman = { network = "pacman" },
  sudo = TERMINAL, su = TERMINAL, doas = TERMINAL, pkexec = TERMINAL, passwd = TERMINAL,
  chsh = TERMINAL, vi = TERMINAL, vim = TERMINAL, nvim = TERMINAL, nano = TERMINAL,
  emacs = TERMINAL, less = TERMINAL, more = TERMINAL, man = TERMINAL, top = TERMINAL,
  htop = TERMINAL, btop = TERMINAL,
  sshfs = PROMPTS, ["ssh-copy-id"] = PROMPTS, mosh = PROMPTS, autossh = PROMPTS,
  ["ssh-add"] = { prompts = true },
  ["ssh-keygen"] = { prompts = "keygen" },
}
