-- What comes back from a contained call, with the real launcher and a real zsh: state that lasts
-- from call to call and over a restart of efrd, hostile names and values that stay data, and what
-- may reach the hidden shell. Needs efr's own Lua state (C modules).
if not package.preload["efr.fs"] then return end
local contained = require "spec.support.contained"
local promote = require "efr.sbx.promote"
local returns = require "efr.sbx.returns"
local shells = require "spec.support.shells"

local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"

-- A generator with a seed, so that a failure can be repeated.
local function generator(seed)
  return function(n)
    seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (seed >> 33) % n + 1
  end
end

local PIECES <const> = {
  "'", '"', "`touch pwned`", "$(touch pwned)", "${(e):-$(touch pwned)}", "\n", "\t", " ", "*", "?",
  "[a-z]", "{a,b}", "~", "~root", "!", "!!", "#", "%", "%F{red}", "$", "$$", "\\", "\\n", "\r",
  "\27[31m", "\1", "\127", "\255", "\195\40", "ä", "=ls", "=(touch pwned)", "<(touch pwned)", "|",
  ";touch pwned;", "&", "&& touch pwned", "> pwned", "\n touch pwned\n", "]", "[", "a]b", ")", "(",
  "x", "Y", "0", "-", "--", "-n", "end", "export", "^", "@", ":", "=", "",
}

local function piece_text(random, most)
  local out = {}
  for i = 1, random(most) do out[i] = PIECES[random(#PIECES)] end
  return table.concat(out)
end

-- NUL-separated data for a call, which reads it without giving zsh any of it as code.
local READ <const> = [=[
local -a data; data=("${(@0)$(<data)}"); typeset -i n
for ((n = 1; n + 2 <= $#data; n += 3)); do
  case $data[n] in
    export) typeset -gx -- "$data[n+1]=$data[n+2]" ;;
    func) functions[$data[n+1]]=": ${(qqqq)data[n+2]}" ;;
    alias) aliases[$data[n+1]]=$data[n+2] ;;
  esac
done]=]
-- Prints the same from what the call got, as hexadecimal text of what zsh holds.
local SHOW <const> = [=[
hex() { print -rn -- "$1" | od -An -v -tx1 | tr -d ' \n'; print -n " " }
local -a data; data=("${(@0)$(<data)}"); typeset -i n
for ((n = 1; n + 2 <= $#data; n += 3)); do
  print -rn -- "$data[n] "
  case $data[n] in
    export) hex "${(P)data[n+1]}" ;;
    func) [[ $functions[$data[n+1]] == builtin\ autoload* ]] && autoload -Uz +X -- "$data[n+1]"
      hex "$functions[$data[n+1]]" ;;
    alias) hex "$aliases[$data[n+1]]" ;;
  esac
  print
done]=]

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

describe("what a contained call leaves for later ones", function()
  local world

  before_each(function() world = contained.new() end)
  after_each(function() world:close() end)

  it("lasts over a restart of efrd: exports, functions, aliases, and what was taken away", function()
    world:run("export A=1 B=2; f() { print f:$1; }; g() { g2; }; alias l='print al'; unalias which-command")
    world:run("unset B; unfunction g; h() { print h:$A; }; f() { print changed:$1; }")
    world:restart()
    local _, output = world:run("eval l; f x; h; print ${B-none} $+functions[g] $+aliases[which-command]")
    assert.are.equal("al\nchanged:x\nh:1\nnone 0 0\n", output)
    world.sandbox:forget("c1")
    world:restart()
    _, output = world:run("print ${A-none} $+functions[f]")
    assert.are.equal("none 0\n", output)
  end)

  it("is nothing when what is kept was damaged", function()
    world:run("export A=1")
    world:file("runtime/sbx/c1/.state", "export\0A\0")
    world:restart()
    local _, output = world:run("print ${A-none}")
    assert.are.equal("none\n", output)
  end)

  it("keeps a function as zsh read it, also one that defines itself or was called", function()
    world:run("alias greet='print hi'")
    world:run("f() { greet \"$@\" }; self() { self() { print second }; print first }")
    world:run("unalias greet; f x; self")
    local _, output = world:run("f x; self; self; f() { print other }; autoload -Uz added")
    assert.are.equal("hi x\nsecond\nsecond\n", output)
    _, output = world:run("f; print -r -- $functions[added]")
    assert.are.equal("other\nbuiltin autoload -XU\n", output)
  end)

  it("reports nothing of functions that a call only used", function()
    world:run("f() { print f }; g() { f }")
    local before = contained.ports.fs.stat(world.base .. "/runtime/sbx/c1/.state")
    world:run("g; f; (f)")
    assert.are.same(before, contained.ports.fs.stat(world.base .. "/runtime/sbx/c1/.state"))
  end)

  it("makes no text of functions that are not called, however many there are", function()
    world:run("for i in {1..1000}; do functions[fn_$i]=\"local a=\\$1; print -r -- $i \\$a\"; done")
    local replay = world.base .. "/runtime/sbx/c1/.replay"
    local fs = contained.ports.fs
    assert.are.equal(1000, #fs.readdir(replay .. "/functions"))
    assert.are.equal("", fs.read_file(replay .. "/state", 10))
    local _, output = world:run("print ${#${(M)${(k)functions}:#fn_*}}; fn_7 x; "
      .. "print ${#${(M)${(v)functions}:#builtin autoload -X*}}")
    assert.are.equal("1000\n7 x\n999\n", output)
  end)

  it("never runs hostile names and values, and gives them back as they were", function()
    local random = generator(tonumber(os.getenv("EFR_TEST_SEED")) or 20261130)
    for round = 1, LONG and 60 or 3 do
      local data, wanted = {}, {}
      local names = { ["a]b"] = 1, ["$(touch pwned)"] = 1, ["-x"] = 1, ["a b"] = 1, ["../x"] = 1,
        ["x\ny"] = 1, ["*"] = 1, ["functions"] = 1 }
      for _ = 1, 20 do names[piece_text(random, 3)] = 1 end
      names[""], names["="] = nil, nil
      for name in pairs(names) do
        for _, kind in ipairs({ "export", "func", "alias" }) do
          local value = piece_text(random, 12)
          local own = kind == "export" and ("V_%d_%d"):format(round, random(1 << 30)) or name
          if #own <= 128 and not own:find("^_efr_") then
            data[#data + 1] = table.concat({ kind, own, value }, "\0") .. "\0"
            wanted[#wanted + 1] = { kind = kind, value = value }
          end
        end
      end
      world:file("home/p/data", table.concat(data))
      local result = world:run(READ)
      assert.is_nil(result.setup_error)
      assert.is_nil(result.state_error)
      local _, first = world:run(SHOW)
      world:restart()
      local _, second = world:run(SHOW)
      assert.are.equal(first, second)
      local row = 0
      for kind, shown in second:gmatch("(%a+) (%x*) ?\n") do
        row = row + 1
        assert.are.equal(wanted[row].kind, kind)
        if kind ~= "func" then assert.are.equal(hex(wanted[row].value), shown, "round " .. round) end
      end
      assert.are.equal(#wanted, row)
      assert.is_nil(contained.ports.fs.stat(world.base .. "/home/p/pwned"))
      world.sandbox:forget("c1")
    end
  end)

  it("starts the next call in the private directory, while the shell stands still", function()
    local project = world.base .. "/home/p"
    local result = world:run("mkdir -p /tmp/own; cd /tmp/own")
    assert.is_nil(result.cwd)
    local _, output = world:run("pwd; cd /var/tmp/own")
    assert.are.equal("/tmp/own\n", output)
    _, output = world:run("pwd; rmdir /tmp/own; ln -s /usr /tmp/own")
    assert.are.equal("/var/tmp/own\n", output)
    _, output = world:run("pwd; rm /tmp/own; mkdir /tmp/own; cd /tmp/own")
    assert.are.equal(project .. "\n", output)
    _, output = world:run("pwd", { cwd = world.base .. "/home" })
    assert.are.equal(world.base .. "/home\n", output)
  end)

  it("reports where it ended only when that is the same place outside", function()
    local places = { ["cd /tmp"] = false, ["cd /dev/shm"] = false, ["cd ~/.ssh"] = false,
      ["cd $XDG_RUNTIME_DIR"] = false, ["cd /usr"] = "/usr", ["mkdir -p 'a\nb'; cd 'a\nb'"] = "/a\nb" }
    for line, place in pairs(places) do
      local cwd = world:run("cd ~/p; " .. line).cwd -- the call before may have ended in /tmp
      if place and place:find("\n") then place = world.base .. "/home/p" .. place end
      assert.are.equal(place or nil, cwd, line)
    end
  end)
end)

describe("sbx.promote for a real call", function()
  local world, call
  setup(function()
    world = contained.new({ ["sandbox.promote_env"] = { "DEBUG", "LC_*", "PATH", "MY_TOKEN", "FOO",
      "GIT_X", "NODE_ENV", "NODE_OPTIONS" }, ["sandbox.export_deny"] = { "LC_X*" } })
    assert(contained.ports.fs.symlink(world.base .. "/home/p", world.base .. "/home/link"))
    call = assert(world:prepare({ line = "true" }))
  end)
  teardown(function() world:close() end)

  local rows = {
    { "a name of the setting", "FOO", "plain words", true },
    { "a name that is not on it", "BAR", "x", false },
    { "what is never promoted", "GIT_X", "x", false },
    { "PATH", "PATH", "/usr/bin", false },
    { "NODE_ENV, an exception", "NODE_ENV", "test", true },
    { "NODE_OPTIONS", "NODE_OPTIONS", "x", false },
    { "a name that looks secret", "MY_TOKEN", "x", false },
    { "a name that export_deny takes out", "LC_XYZ", "C", false },
    { "a path of the system", "DEBUG", "/usr/share", true },
    { "a path in the project", "DEBUG", "PROJECT/x", false },
    { "a path in the project behind a link", "DEBUG", "HOME/link/x", false },
    { "a missing path in the project behind a link", "DEBUG", "HOME/link/none/deep", false },
    { "a path that leads back to the project", "DEBUG", "/usr/../PROJECT/x", false },
    { "a path of /tmp after a colon", "DEBUG", "a:/tmp/x", false },
    { "a path of /var/tmp after an equals sign", "DEBUG", "a=/var/tmp", false },
    { "a path of the home directory", "DEBUG", "~/x", true },
    { "another user's home", "DEBUG", "~root/x", false },
    { "a dot, which is the project", "DEBUG", "a .", false },
    { "two dots, which are not", "DEBUG", "..", true },
    { "a relative path", "DEBUG", "node_modules/.bin", false },
    { "the state of the sandbox", "DEBUG", "STATE/sandbox/c1/x", false },
    { "an escape", "DEBUG", "a\27[0m", false },
    { "a line break", "DEBUG", "a\nb", false },
    { "4096 bytes", "DEBUG", ("x"):rep(4096), true },
    { "4097 bytes", "DEBUG", ("x"):rep(4097), false },
    { "quotes and code", "DEBUG", "'\"`id`$(id)${x}*", true },
  }
  for _, row in ipairs(rows) do
    it((row[4] and "lets pass " or "keeps ") .. row[1], function()
      local value = row[3]:gsub("^(.-)/?PROJECT", "%1" .. world.base .. "/home/p")
        :gsub("HOME", world.base .. "/home"):gsub("STATE", world.base .. "/state")
      local list = { { kind = "export", name = row[2], value = value } }
      local out = returns.exports(call, list, world.base .. "/home/p")
      assert.are.equal(row[4] and value or nil, out[row[2]])
    end)
  end

  it("keeps what the hidden shell takes over no second time", function()
    local result = world:run("export DEBUG=1 FOO=/tmp/x LC_ALL=C BAR=2")
    assert.are.same({ DEBUG = "1", LC_ALL = "C" }, result.exports)
    assert.are.same({ FOO = "/tmp/x", BAR = "2" }, world.sandbox.state:get("c1").exports)
    result = world:run("export FOO=1; unset DEBUG")
    assert.are.same({ FOO = "1" }, result.exports)
    assert.are.same({ BAR = "2" }, world.sandbox.state:get("c1").exports)
  end)

  it("gives nothing of a variable that was taken away again", function()
    local list = { { kind = "export", name = "DEBUG", value = "1" },
      { kind = "unset", name = "DEBUG" } }
    assert.are.same({}, promote.exports(list, { is_own = function() return false end }))
  end)
end)

describe("what the hidden shell takes over", function()
  local function applied(exports, cwd, line, check)
    shells.world({}, function(world)
      local shell = world:shell()
      shell:run { line = "true" }
      local call = world:contained("/bin/true", { exports = exports, cwd = cwd })
      shell:run { call = call, launch = "contained", line = "x" }
      check(world, shell:run { line = line })
    end)
  end

  it("is data, whatever the values hold", function()
    local random, exports, line = generator(7), {}, {}
    for i = 1, LONG and 400 or 40 do
      local value = piece_text(random, 10):gsub("[\0-\8\10-\31\127]", "_")
      exports["V" .. i] = value
      line[i] = ("print -rn -- $V%d | od -An -v -tx1 | tr -d ' \\n'; print"):format(i)
    end
    applied(exports, nil, table.concat(line, "\n"), function(world, result)
      assert.are.equal("finished", result.outcome)
      local i = 0
      for shown in result.output:gmatch("([^\n]*)\n") do
        i = i + 1
        assert.are.equal(hex(exports["V" .. i]), shown)
      end
      assert.are.equal(LONG and 400 or 40, i)
      assert.is_nil(world:read("pwned"))
    end)
  end)

  it("is never a variable that means something to zsh", function()
    local special = { "HISTSIZE", "IFS", "PATH", "LINES", "WORDCHARS", "PROMPT", "FPATH", "SECONDS",
      "RANDOM", "UID", "_" }
    local exports, line = { TZ = "UTC", LC_ALL = "C", PLAIN = "1" }, {}
    for i, name in ipairs(special) do
      exports[name] = "77"
      line[i] = ("[[ $%s == 77 ]] && print %s"):format(name, name)
    end
    applied(exports, nil, table.concat(line, "\n") .. "\nprint $TZ $LC_ALL $PLAIN",
      function(_, result) assert.are.equal("UTC C 1\n", result.output) end)
  end)

  it("moves to a directory with a hostile name, and runs no hook for it", function()
    shells.world({}, function(world)
      local dir = world.home .. "/$(touch pwned)'\"; touch pwned;*"
      assert(contained.ports.fs.mkdirs(dir, 448))
      local shell = world:shell()
      shell:run { line = "chpwd() { touch ~/hooked }" }
      local call = world:contained("/bin/true", { cwd = dir })
      local result = shell:run { call = call, launch = "contained", line = "x" }
      assert.are.equal(dir, result.cwd)
      result = shell:run { line = "print -r -- $PWD; ls -A ~" }
      assert.is_truthy(result.output:find(dir .. "\n", 1, true), result.output)
      assert.is_nil(world:read("pwned"))
      assert.is_nil(world:read("hooked"))
    end)
  end)
end)
