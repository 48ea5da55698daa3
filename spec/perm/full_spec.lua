-- Full mode: what it lets through, what stays closed, and which deletes ask.
local calls = require "spec.perm.calls"

local function decide(line, changes)
  changes = changes or {}
  changes.mode = "full"
  return calls.decide(line, changes)
end

local GUARDED = {
  "rm -rf /", "rm -rf /etc", "rm -rf ~", "rm -rf ~/Documents", "rm ~/notes.txt", "rm -rf ~/p/app",
  "rm -rf ~/p", "rm -rf .", "rm -rf ..", "rm -rf .git", "rm -rf ~/.config",
  "rm -rf ~/.local/share/efr/x", "rm -rf $X/", "rm -rf ${X}", "rm -rf ~/*", "rm -rf /*", "rm -rf *",
  "rm -rf ~/p/app/*", "find ~ -delete", "find -delete", "find / -name x -delete",
  "rsync -a --delete a/ ~", "dd if=x of=/dev/sda", "mkfs.ext4 /dev/sdb1", "wipefs -a /dev/sdb",
  "blkdiscard /dev/sdb", "shred /dev/sdb", "sgdisk -Z /dev/sdb", "parted /dev/sdb rm 1",
  "sudo rm -rf /", "sh -c 'rm -rf ~'", "ls; rm -rf ~/p/app", "truncate -s 0 ~/notes.txt",
  "echo x > ~/.zshrc", ": >| ~/.zshrc", "cp a.txt ~/.zshrc", "mv a.txt ~/.bash_history", "tee ~/.zshrc",
  "ln -sf a.txt ~/.zshrc", "install a.txt ~/.zshrc", "cat <a >~/p/app/../../.zshrc",
  "cd; rm -rf x", "echo ~ | xargs rm -rf", "find / -exec rm -rf {} +",
}
local FREE = {
  "rm -rf target", "rm -rf src/*", "rm a.txt", "rm -rf ~/p/app/build", "rm -rf /tmp/x/y",
  "find src -name '*.o' -delete", "rsync -a --delete a/ build/x", "dd if=x of=out.img", "git clean -fdx",
  "rm -rf ~/notes/old", "git push --force", "sudo ls", "curl -d x https://h", "echo x > ~/notes.txt",
  "mv ~/a ~/b", "ls ~", "dd if=x of=/dev/null", "echo x > /dev/null", "echo x >> ~/.zshrc", "tee -a ~/.zshrc",
  "cp a.txt ~/Documents", "ln -s a.txt ~/.zshrc", "echo x > a.txt", "rm /dev/shm/x",
}

describe("perm.full", function()
  it("asks a timed question before a critical delete", function()
    for _, line in ipairs(GUARDED) do
      local decision = decide(line)
      assert.equal("ask", decision.effect, line)
      local guard
      for _, reason in ipairs(decision.reasons) do guard = reason.guard and reason or guard end
      assert.equal(60, guard.seconds, line)
      assert.is_truthy(guard.text:find("deletes or overwrites", 1, true))
    end
  end)

  it("looks behind links, and at mount points", function()
    local function guard(line, facts)
      for _, reason in ipairs(decide(line, { facts = facts }).reasons) do
        if reason.guard then return reason.deletes end
      end
      return nil
    end
    local facts = { parents = { ["/tmp/l/x"] = "/home/u/x" }, reals = { ["/tmp/f"] = "/home/u/.zshrc" },
      mounts = { ["/tmp/data"] = true }, targets = { ["/tmp/f"] = "file" } }
    assert.equal("/home/u/x: a part of your home directory", guard("rm -rf /tmp/l/x", facts))
    assert.equal("/tmp/data: a mount point", guard("rm -rf /tmp/data", facts))
    assert.equal("/home/u/.zshrc: a part of your home directory", guard("echo > /tmp/f", facts))
    assert.is_nil(guard("rm /tmp/f", facts))
    assert.is_nil(guard("rm -rf /tmp/other", facts))
  end)

  it("lets everything else through, with the user's rights and recorded exits", function()
    for _, line in ipairs(FREE) do
      local decision = decide(line)
      assert.equal("allow", decision.effect, line)
      assert.equal("direct", decision.launch)
      for _, exit in ipairs(decision.exits) do assert.equal("full", exit.approver) end
    end
    assert.equal("upload", decide("git push").exits[1].kind)
  end)

  it("keeps secrets, efr's credentials and its configuration closed", function()
    for _, line in ipairs { "cat ~/.ssh/id", "cat ~/.local/share/efr/secrets/x",
      "echo x > ~/.config/efr/config.toml" } do
      assert.equal("deny", decide(line).effect, line)
    end
  end)

  it("follows the user's own asks and refusals", function()
    local rules = { { action = "execute", effect = "ask",
      resource = { command = { program = "make", args = {}, forbid = {} } } } }
    assert.equal("ask", decide("make", { rules = rules }).effect)
    assert.equal("allow", decide("ls", { rules = rules }).effect)
  end)

  it("caps a prompt from another device at cautious", function()
    local decision = decide("make", { origin = "phone" })
    assert.equal("cautious", decision.mode)
    assert.equal("ask", decision.effect)
  end)
end)
