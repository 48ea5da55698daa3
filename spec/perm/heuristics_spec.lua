local heuristics = require "efr.perm.heuristics"
local lenient = require "efr.perm.lenient"
local shell = require "efr.perm.shell"

local function flags(line)
  return heuristics.flags(lenient.commands(assert(shell.parse(line))))
end

local function each(flag, yes, no)
  for _, line in ipairs(yes) do assert.is_true(flags(line)[flag], line) end
  for _, line in ipairs(no) do assert.is_nil(flags(line)[flag], line) end
end

describe("perm.heuristics", function()
  it("knows the network", function()
    each("network", { "curl x", "/usr/bin/wget x", "nice ssh h", "ls | nc h 1", "git fetch", "git -C a push",
      "git $x", "npm ci", "npm", "yarn add x", "echo $(curl x)", "sh -c 'curl x'", "rsync a h:b",
      "pip install x", "docker ps", "pacman -Syu", "pacman -Sw x", "pacman -S x", "pacman -U x",
      "pacman -Fy", "pacman --sync --refresh", "pacman -Sy -s x", "git submodule update" },
      { "git status", "git log", "npm run build", "pnpm test", "yarn -s lint", "pacman -Q", "pacman -Qi x",
        "pacman -R x", "pacman -T x", "pacman -D x", "pacman -Ss x", "pacman -Si x", "pacman -Sc",
        "pacman -F x", "pacman --query", "pacman --database x", "echo curl", "cat ssh" })
  end)

  it("knows what waits at the terminal", function()
    each("interactive", { "sudo ls", "vim a", "env less a", "man ls", "ssh h", "passwd", "find . -exec vi {} +" },
      { "ls", "echo vim", "git commit" })
  end)

  it("knows what may ask for a password", function()
    each("may_prompt", { "rsync a u@h:b", "rsync -e x a b", "RSYNC_RSH=x rsync a b", "scp a h:b", "sftp h",
      "ssh-add", "ssh-keygen -t ed25519", "git push", "GIT_SSH_COMMAND=x git status",
      "git -c core.sshCommand=x status", "mosh h" },
      { "rsync a b", "rsync -a /a b", "ssh-keygen -N '' -f k", "git status", "ls" })
  end)

  it("finds all of it by name in a line that nobody can read", function()
    local function opaque(line) return heuristics.opaque(lenient.programs(line)) end
    assert.same({ network = true }, opaque "'; curl x")
    assert.same({ network = true, may_prompt = true }, opaque "x 'git y push")
    assert.same({ interactive = true }, opaque "\"vim")
    assert.same({}, opaque "git status '")
  end)
end)
