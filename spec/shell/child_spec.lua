-- Specs of what a contained call gets of its hidden shell (functions, aliases, options), and what it
-- reports then: a real zsh on a real terminal, and the real child shell. Not covered: the sandbox
-- around the child (tests/e2e/shell_functions.sh), the state of earlier calls (returns_spec.lua).
local records = require "efr.sbx.records"
local shells = require "spec.support.shells"

local CHILD <const> = assert(shells.ports.fs.realpath(
  (os.getenv("EFR_SOURCE") or ".") .. "/zsh/efr-child.zsh"))

-- Runs a line as a contained call does, without the sandbox. Returns its output and its records.
local function contained(world, line, opts)
  opts = opts or {}
  local path = world:write("launcher",
    "#!/bin/sh\nexec zsh -f '" .. CHILD .. "' \"$3/in\" 3>\"$3/records\"\n")
  assert(shells.ports.fs.chmod(path, 493))
  local call = world:contained(path, { exit_code = 0 })
  assert(shells.ports.fs.mkdirs(call.dir .. "/in/replay/functions", 448))
  local function put(name, text)
    local file = assert(io.open(call.dir .. "/in/" .. name, "w"))
    assert(file:write(text))
    file:close()
  end
  put("line", line)
  if opts.plain then put("plain", opts.plain) end
  for name, text in pairs(opts.state or {}) do put("replay/" .. name, text) end
  local result = world:shell():run {
    call = call, launch = "contained", timeout_ms = 30000, trusted = opts.trusted,
  }
  assert.equal("finished", result.outcome, result.setup_error or result.output)
  local parsed = assert(records.parse(shells.ports.fs.read_file(call.dir .. "/records", 1 << 20)))
  local said = {}
  for _, record in ipairs(parsed.list) do
    if record.kind ~= "cwd" then
      said[#said + 1] = ("%s %s=%s"):format(record.kind, record.name, record.value or "")
    end
  end
  table.sort(said)
  return result.output, said, call
end

local function direct(world, line)
  local result = world:shell():run { line = line, timeout_ms = 30000 }
  assert.equal("finished", result.outcome, result.setup_error or result.output)
end

local function with(rc, fn)
  return function() shells.world({ rc = rc }, fn) end
end

describe("a contained call", function()
  it("has functions, aliases and options of the hidden shell", with([==[
    greet() { print -r -- "hello $1" }
    'a.b-c'() { print odd }
    alias hi='greet from' ei=''
    setopt extended_glob; setopt no_nomatch
    TRAPUSR1() { print trap }
    _comp_git() { print completion }
    fpath=(~/zf $fpath); autoload -Uz mine
  ]==], function(world)
    direct(world, "mkdir -p zf; print 'print loaded $1' >zf/mine")
    local line = "hi alias; greet x; a.b-c; mine 7; [[ aab == (#i)A#b ]] && print glob; echo no*match"
      .. "; ei; print -r -- ${+functions[TRAPUSR1]}"
    local output, said = contained(world, line)
    assert.equal("hello from\nhello x\nodd\nloaded 7\nglob\nno*match\n0\n",
      (output:gsub("from alias", "from")))
    assert.same({}, said)
  end))

  it("sees what a direct call defined, changed and took away", with("old() { print old }", function(world)
    assert.equal("old\n", contained(world, "old"))
    direct(world, "new() { print new }; alias al='print aliased'; unfunction old; setopt rc_quotes")
    assert.equal("new\naliased\nit's\nfunction: 0\n",
      (contained(world, "new; al; print 'it''s'; print function: ${+functions[old]}")))
    direct(world, "unalias al; new() { print newer }")
    assert.equal("newer\n0\n", (contained(world, "new; print ${+aliases[al]}")))
  end))

  it("reports only what the line changed", with(
    "f() { print f; }; g() { print g; }; h() { print h; }; alias a=b c=d", function(world)
    local _, said = contained(world, "f; g; g() { print 'other g'; }; unfunction h; alias a=x; unalias c")
    assert.same({ "alias a=x", "func g=\tprint 'other g'", "unalias c=", "unfunc h=" }, said)
  end))

  it("takes an earlier call's functions before the shell's", with("f() { print shell; }; g() { print g; }",
    function(world)
    local output, said = contained(world, "f; g", {
      state = { state = "alias\0g\0print state-alias\0", names = "f", ["functions/f"] = "\tprint state" },
    })
    assert.equal("state\nstate-alias\n", output)
    assert.same({}, said)
  end))

  it("has no alias and no function named like a trusted program", with(
    "git() { print fake; }; alias ls='print fake'; ok() { print ok; }", function(world)
    local trusted = { "git", "ls" }
    local line = "whence -w git; whence -w ls; ok"
    assert.equal("git: command\nls: command\nok\n", (contained(world, line, { trusted = trusted })))
    -- A word that becomes trusted later goes at once.
    assert.equal("ok: none\n", (contained(world, "whence -w ok", { trusted = { "ok" } })))
  end))

  it("runs the programs that its question named", with("ls() { print shell; }; alias sed='print no'",
    function(world)
    local output, said = contained(world, "whence -w ls sed git cat; ok", {
      plain = "ls\nsed\ngit\n",
      state = {
        state = "alias\0ls\0print state\0func\0git\0print state git\0", names = "ok\ncat",
        ["functions/ok"] = "\tprint ok", ["functions/cat"] = "\tprint cat",
      },
    })
    assert.equal("ls: command\nsed: command\ngit: command\ncat: function\nok\n", output)
    assert.same({}, said)
  end))

  it("runs with any functions, aliases and options of the user's", with([==[
    cd() { builtin cd "$@" && print moved }
    setopt ksh_arrays sh_word_split no_unset glob_subst warn_create_global rc_expand_param
    export MARK=1
    for w in typeset setopt shift print read exec local if case return; do
      aliases[$w]="print alias-$w;"
    done
  ]==], function(world)
    local output, said = contained(world, "\\print -r -- $MARK; cd /; X=(a b); \\export NEW='v w'; \\print ${X}")
    assert.equal("1\nmoved\na\n", output)
    assert.same({ "export NEW=v w" }, said)
  end))

  it("costs no more with many functions, and does not write them again", with(
    "for i in {1..600}; do functions[many_$i]=\"print $i; if true; then print x; fi\"; done", function(world)
    local _, _, first = contained(world, "many_600")
    local output, _, second = contained(world, "many_7")
    assert.equal("7\nx\n", output)
    local a = assert(shells.ports.fs.stat(first.dir .. "/in/functions.zwc"))
    local b = assert(shells.ports.fs.stat(second.dir .. "/in/functions.zwc"))
    assert.equal(a.ino, b.ino)
  end))

  it("leaves out what is too much", with(
    "big() { : }; functions[big]=\"print ${(l:4200000::x:):-}\"; small() { print small; }", function(world)
    assert.equal("0\nsmall\n", (contained(world, "print ${+functions[big]}; small")))
  end))
end)
