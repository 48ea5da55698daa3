-- What the user's words name.
require "spec.helper"
local named = require "efr.perm.named"

local function path(words, at, floor, links)
  return named.path(words, at, { home = "/home/u", floor = floor, links = links })
end

describe("perm.named", function()
  it("takes absolute paths, the ~ form and the last two parts, by whole parts", function()
    local at = "/home/u/src/bin/git"
    for _, words in ipairs { "change /home/u/src/bin/git now", "see ~/src/bin/git.", "in bin/git, please",
      "(bin/git)", "`~/src/bin/git`", "bin/git/" } do
      assert.is_true(path(words, at), words)
    end
    for _, words in ipairs { "git", "src/bin/github.c", "bin/git-lfs", "bin/git/x", "sbin/git", "my/bin/git.c",
      "./bin/git2", "bin/git.txt", "/bin/git" } do
      assert.is_false(path(words, at), words)
    end
    assert.is_false(path("u/notes is fine", "/home/u/notes"))
    assert.is_true(path("put it into ~/notes", "/home/u/notes"))
  end)

  it("takes the plain name of a floor file, and a unit by its words", function()
    assert.is_true(path("fix my zshrc", "/home/u/.zshrc", "startup"))
    assert.is_true(path("in .zshrc", "/home/u/.zshrc", "startup") or path("in ~/.zshrc", "/home/u/.zshrc"))
    assert.is_false(path("fix my zshrc", "/home/u/.zshrc"))
    assert.is_true(path("change my Hyprland config", "/home/u/.config/hypr/hyprland.conf", "autostart"))
    assert.is_false(path("start hyprland", "/home/u/.config/hypr/hyprland.conf", "autostart"))
    local unit = "/home/u/.config/systemd/user/backup.service"
    assert.is_true(path("edit backup.service", unit, "autostart"))
    assert.is_true(path("the backup unit", unit, "autostart"))
    assert.is_false(path("make a backup", unit, "autostart"))
    assert.is_false(path("open firefox", "/home/u/.local/share/applications/firefox.desktop", "autostart"))
    assert.is_false(path("run tool", "/home/u/.local/bin/tool", "path"))
    assert.is_false(path("ask claude", "/home/u/p/.claude", "agent"))
  end)

  it("takes the names of links that lead to a path", function()
    assert.is_true(path("my zshrc", "/home/u/dots/zsh", "dotfile", { "/home/u/.zshrc" }))
    assert.is_false(path("my zshrc", "/home/u/dots/zsh", "dotfile"))
  end)

  it("takes a host as a whole", function()
    for _, words in ipairs { "get https://a.example.org/x", "from A.EXAMPLE.org.", "u@a.example.org:p" } do
      assert.is_true(named.host(words, "a.example.org"), words)
    end
    for _, words in ipairs { "example.org", "xa.example.org", "b.a.example.org", "a.example.org.evil",
      "a.example.orgs" } do
      assert.is_false(named.host(words, "a.example.org"), words)
    end
  end)
end)
