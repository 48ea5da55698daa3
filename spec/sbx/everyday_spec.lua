-- Ordinary lines in a contained call give what they give outside: quoting, odd names, the user's
-- locale, time zone and names, background jobs, a view of the project without anything of efr's.
-- Needs efr's own Lua state (C modules). Not covered: sockets, git, caches (tests/sbx).
if not package.preload["efr.fs"] then return end
local contained = require "spec.support.contained"

describe("a contained line", function()
  local world

  setup(function()
    world = contained.new()
    for _, name in ipairs({ "file", ".hidden", "sub/deep", "new\nline", "byte\255" }) do
      world:file("home/p/" .. name, "text of " .. name .. "\n")
    end
    world:file("home/.aws/credentials", "SECRET\n")
  end)
  teardown(function() world:close() end)

  -- The same shell, directory and environment, without the sandbox.
  local function outside(line)
    local path = world:file("outside.zsh", line)
    local pipe = assert(io.popen(("cd %s && env -i PATH=/usr/bin:/bin HOME=%s zsh -f %s 2>&1 </dev/null")
      :format(contained.quoted(world.base .. "/home/p"), contained.quoted(world.base .. "/home"),
        contained.quoted(path))))
    local output = pipe:read("a")
    local _, _, status = pipe:close()
    return output, status
  end

  local rows = {
    { "an exclamation mark", [[printf '%s\n' 'a!b' "a!b" a\!b]] },
    { "a control character", [[printf '%s' $'\x01\x7f\e' | od -An -c]] },
    { "quotes in quotes", [[print -r -- "it's" 'say "x"' $'a\'b' \\]] },
    { "a here-document", "cat <<'END'\n$HOME `x` \\n\nEND\ncat <<END\n$((1+1))\nEND" },
    { "no glob that fits", "(print -- *.none) 2>/dev/null; print $?" },
    { "a pipe status", "false | true; print $pipestatus; (exit 3)" },
    { "an exit", "print a; exit 9; print b" },
    { "names with bytes of every kind", "ls -A | od -c; cat *line byte*" },
    { "a directory with such a name", "mkdir -p $'d\\xff\\n'; cd $'d\\xff\\n' && pwd | od -c; rmdir ../d*" },
    { "the user", "id; whoami; print $HOME; getent passwd $(id -un)" },
    { "locale and time zone", "locale; date +%Z%z; export LC_ALL=C.UTF-8; print -n ä | wc -m" },
    { "the resolver", "getent hosts localhost" },
    { "a background job", "{ print from job } & wait; sleep 0.01 & wait $!; print $?" },
    { "a function, local and return", "f() { local x=1; return 4 }; f; print $?; local y=2; print $y" },
    { "a trap", "trap 'print bye' EXIT; print hi" },
    { "the view of the project", "ls -la | grep -v ' \\.\\.$' | sort; find . -type f | sort | od -c" },
    { "a pseudo-terminal", "script -qec 'tty >/dev/null && print yes' /dev/null" },
  }
  for _, row in ipairs(rows) do
    it("gives the same for " .. row[1], function()
      local expected, status = outside(row[2])
      local result, output = world:run(row[2])
      assert.are.equal(expected, output)
      assert.are.equal(status or 0, result.exit_code)
      assert.is_truthy(#expected > 0)
    end)
  end

  it("of 100 KiB is read whole", function()
    local _, output = world:run("x='" .. ("y"):rep(100 * 1024) .. "'; print ${#x}")
    assert.are.equal("102400\n", output)
  end)

  it("shows the home directory without a name that is not the user's", function()
    local _, output = world:run("ls -A ~ ~/.aws; find ~ -type c -o -type b")
    assert.are.equal(("%s/home:\n.aws\n.ssh\np\n\n%s/home/.aws:\n"):format(world.base, world.base),
      output)
  end)
end)
