-- In auto: a word more behind a command never makes the decision less strict, but for the programs
-- named here with the reason. Lines: the single commands of spec/data/bypass.jsonl and everyday ones.
local calls = require "spec.perm.calls"
local json = require "efr.json"
local shell = require "efr.perm.shell"

local ORDER <const> = { allow = 1, contain = 2, ask = 3, deny = 4 }
local MORE <const> = { "x", "-x", "--", "/etc/hosts" }

-- Pattern of lines = why a word may loosen them. The words of the spec for df and findmnt: bare, they
-- show all mounts, which are the sandbox's inside, so they leave it or get a view of the host's. With
-- a place they ask about that place, which is the same one inside.
local EXCEPTIONS <const> = {
  ["%f[%w]df%f[%W]"] = "with a place, it shows that place, which needs no exit",
  ["%f[%w]findmnt%f[%W]"] = "with -x it checks the file of mounts, which needs no exit",
  ["^cp "] = "the word more is the target then, and what was it is only read",
  ["^ln "] = "the word more is the directory of the links then",
  ["^git ls%-remote$"] = "a path is a remote that is no host",
  ["^git pull$"] = "a path is a remote that is no host",
  ["^yarn$"] = "it installs; with a word it runs a script",
  ["^> "] = "it empties a file; with a word it is where a command writes",
}

local EVERYDAY <const> = {
  "df", "df -hT", "command df -h", "/bin/df", "timeout 10 df", "watch df", "findmnt", "findmnt -t ext4",
  "ls", "cat a.txt", "ps aux", "ss -tlnp", "ip addr", "ip", "lsblk", "top -b", "free -m", "make", "mount",
  "cp a.txt ~/Documents/", "cp a.txt b.txt", "mv src ~/y", "rm -rf build", "rm i.log", "tee ~/notes/a.md",
  "touch ~/notes/new.md", "git status", "git ls-remote", "git pull", "git push", "git fetch origin", "yarn",
  "git reset --hard", "git clean -fdx", "git commit -m x", "npm ci", "npm install", "cargo build", "cargo update",
  "go mod tidy", "uv sync", "pip install x", "curl https://example.org", "wget https://example.org", "ssh host",
  "scp a.txt host:", "rsync -a . host:b", "sudo ls", "su -", "docker ps", "systemctl status x",
  "systemctl --user enable x", "crontab -l", "crontab -e", "journalctl -b", "notify-send x", "xrandr",
  "loginctl", "> i.log", "echo x > ~/notes.txt", "truncate -s 0 i.log", "shred -u i.log", "chmod +x a.txt",
  "ln -s a ~/b", "python3 x.py", "node x.js", "kill 1", "pkill x", "gpg -d a", "pass show x", "tmux ls",
}

-- One command that runs at once; a word behind it is one of its own.
local function takes_a_word(line)
  local tree = not line:find("[\n#\\]") and not line:find("<<", 1, true) and shell.parse(line)
  return tree and #tree.items == 1 and not (tree.async and tree.async[1])
    and tree.items[1].kind == "simple"
end

local function exception(line)
  for pattern in pairs(EXCEPTIONS) do
    if line:find(pattern) then return pattern end
  end
  return nil
end

local function effect(line, facts)
  return calls.decide(line, { mode = "auto", facts = facts }).effect
end

describe("a word more", function()
  it("never loosens a line in auto", function()
    local lines, used, seen = table.move(EVERYDAY, 1, #EVERYDAY, 1, {}), {}, 0
    for row in io.lines((os.getenv("EFR_SOURCE") or ".") .. "/spec/data/bypass.jsonl") do
      lines[#lines + 1] = assert(json.decode(row)).cmd
    end
    for _, line in ipairs(lines) do
      for _, facts in ipairs(takes_a_word(line) and { {}, { mount_view = true } } or {}) do
        local before = effect(line, facts)
        for _, word in ipairs(MORE) do
          local more = line .. " " .. word
          local after = effect(more, facts)
          seen = seen + 1
          if ORDER[after] < ORDER[before] then
            local known = exception(line)
            assert(known, ("%s is %s, %s is %s"):format(line, before, more, after))
            used[known] = true
          end
        end
      end
    end
    assert(seen > 2000, seen)
    for pattern, why in pairs(EXCEPTIONS) do
      assert(used[pattern], why .. ": no line needs it")
    end
  end)
end)
