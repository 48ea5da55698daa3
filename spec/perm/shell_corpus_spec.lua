-- Every function file that zsh ships is read without an unknown node, but for those that are named
-- here with the reason; they are less than one of a hundred.
local ast = require "efr.perm.ast"
local shell = require "efr.perm.shell"

local EXPLAINED <const> = {
  _gcc = "longer than 64 KiB", _git = "longer than 64 KiB", _perforce = "longer than 64 KiB",
  _tmux = "longer than 64 KiB",
  _bsd_disks = "a backslash before the operator: ${(M)${(f)...}\\:#...}",
  _aptitude = "a line continuation before the operator of ${ }",
}

describe("the function files of zsh", function()
  it("are read", function()
    local files, failed = 0, {}
    for path in io.popen("find /usr/share/zsh/functions -type f ! -name '*.zwc' | sort"):lines() do
      local file = assert(io.open(path, "rb"))
      local text = file:read("a")
      file:close()
      files = files + 1
      local tree, why, detail = shell.parse(text)
      if not tree or ast.has_unknown(tree) then
        local name = path:match("[^/]+$")
        failed[#failed + 1] = name
        assert(EXPLAINED[name], ("%s: %s %s"):format(path, why or "unknown",
          detail and detail.what or ""))
      end
    end
    assert(files > 1000, files .. " files: is zsh-common installed?")
    assert(#failed <= files // 100, table.concat(failed, " "))
  end)
end)
