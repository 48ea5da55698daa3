-- The work of each reading grows linearly with the line: counted Lua instructions for n and 2n. And
-- a line is judged whole, however many commands it has.
local calls = require "spec.perm.calls"
local lenient = require "efr.perm.lenient"
local line_paths = require "efr.perm.line_paths"
local read_only = require "efr.perm.read_only"
local shell = require "efr.perm.shell"
local strict = require "efr.perm.strict"

local CLEAN = { git_code = { state = "clean" }, found = calls.FOUND }
local CTX = { cwd = "/home/u/p", home = "/home/u" }

local function steps(fn)
  local count = 0
  debug.sethook(function() count = count + 1 end, "", 100)
  fn()
  debug.sethook()
  return count
end

local function rep(text, separator)
  return function(n) return text:rep(n, separator) end
end

local LINES = {
  words = function(n) return "cat " .. ("a "):rep(n) end,
  commands = rep("cat a", "; "),
  pipes = rep("cat a", " | "),
  joins = rep("git log", " && "),
  globs = function(n) return "ls " .. ("a*[bc]?d "):rep(n) end,
  ["one long word"] = function(n) return "ls " .. ("a"):rep(n * 10) end,
  ["a word of many parts"] = function(n) return "ls " .. ("a'b'\"c\"\\d"):rep(n) end,
  options = function(n) return "grep " .. ("-n --color=auto -e x "):rep(n) end,
  ["long clusters"] = function(n) return "grep -" .. ("n"):rep(n * 10) .. " x" end,
  substitutions = function(n) return "echo " .. ("$(cat a) "):rep(n) end,
  redirections = function(n) return "cat " .. ("< a > /dev/null "):rep(n) end,
  braces = function(n) return "ls " .. ("{a,b}{c,d} "):rep(n) end,
  ["wide braces"] = function(n) return "ls {" .. ("a,"):rep(n) .. "b}" end,
  loops = rep("for i in a b c; do for j in d e; do cat $i $j; done; done", "; "),
  ["loop values"] = function(n) return "for i in " .. ("a "):rep(n) .. "; do cat $i; done" end,
  ["a loop with a long body"] = function(n)
    return "for i in a b c d e f g h; do " .. ("cat $i; "):rep(n) .. "done"
  end,
  wrappers = function(n) return ("nice "):rep(n) .. "cat a" end,
  watches = function(n) return ("watch "):rep(n) .. "cat a" end,
  ["find -exec"] = function(n) return "find . " .. ("-exec rm {} \\; "):rep(n) end,
  ["find in find"] = function(n) return ("find . -exec "):rep(n) .. "rm {} \\;" end,
  ["relative cd"] = function(n) return ("cd a; "):rep(n) .. ("cat b; "):rep(n) end,
  ["long cd"] = function(n) return "cd " .. ("a/"):rep(n) .. "; cat " .. ("b "):rep(n) end,
  links = function(n) return ("ln -s a b; "):rep(n) .. ("cat b/c; "):rep(n) end,
  ["deep paths behind a link"] = function(n) return "ln -s a b; cat " .. ("c/"):rep(n) end,
  tests = rep("[[ -f a && ! -n b ]]", " && "),
  sed = function(n) return "sed -n '" .. ("1p;"):rep(n) .. "' f" end,
  printf = function(n) return "printf '" .. ("%s"):rep(n) .. "' " .. ("a "):rep(n) end,
  ["here-documents"] = rep("cat <<E\na $(cat b)\nE\n"),
  git = function(n) return "git log " .. ("a..b "):rep(n) end,
  evals = function(n) return ("eval "):rep(n) .. "cat a" end,
  assignments = function(n) return ("LC_ALL=C "):rep(n) .. "ls" end,
}

local READINGS = {
  strict = function(ast) strict.commands(ast) end,
  ["read-only"] = function(ast) read_only.judge(ast, CLEAN) end,
  lenient = function(ast) lenient.commands(ast) end,
  paths = function(ast) line_paths.declare(ast, CTX) end,
}

describe("the work of the readings", function()
  for name, make in pairs(LINES) do
    it("grows linearly for " .. name, function()
      for reading, read in pairs(READINGS) do
        local small, large = assert(shell.parse(make(250))), assert(shell.parse(make(500)))
        local before, after = steps(function() read(small) end), steps(function() read(large) end)
        assert.is_true(after <= 3 * before + 60, ("%s: %d, then %d"):format(reading, before, after))
      end
    end)
  end
end)

describe("a line of many commands", function()
  it("is judged whole", function()
    local commands = {}
    for i = 1, 60 do commands[i] = "ls a" .. i end
    assert.is_true(read_only.judge(shell.parse(table.concat(commands, "; ")), CLEAN))
    for i = 1, 60 do
      local kept = commands[i]
      commands[i] = "touch P"
      for _, separator in ipairs { "; ", " && ", " || ", " | ", "\n" } do
        local ok = read_only.judge(shell.parse(table.concat(commands, separator)), CLEAN)
        assert.is_false(ok)
      end
      commands[i] = kept
    end
  end)
end)
