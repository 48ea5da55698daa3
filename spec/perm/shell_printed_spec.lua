-- zsh prints a function in a form of its own after it has read it. The grammar must find the same
-- commands, words and nesting in that form as in the text: in every function file that zsh ships, and
-- in generated lines. Here-documents are left out, because zsh prints them as here-strings, and
-- texts beyond ASCII, because it garbles some bytes of them when it prints; and lines
-- where it prints a redirection behind the word {name}, which makes it a variable of the redirection,
-- or loses a parenthesis of a subshell inside $( ).
local ast = require "efr.perm.ast"
local generator = require "spec.perm.shell_generator"
local judge = require "spec.perm.shell_judge"
local shell = require "efr.perm.shell"
local signature = require "spec.perm.shell_signature"

local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"

local function count(text)
  return select(2, text:gsub("%$%(%(", ""))
end

-- Whether the text and what zsh printed have one shape; nil where one of them has none.
local function same(text, printed)
  local own, theirs = shell.parse(text), printed and shell.parse(printed)
  local left_out = text:find("<<", 1, true) or text:find("[\128-\255]")
    or printed and (printed:find("{[%w_]+} %d?[<>&]") or count(text) ~= count(printed))
  if not own or not theirs or left_out or ast.has_unknown(own) then
    return nil
  end
  local a, b = signature(own), signature(theirs)
  return a == b, a, b
end

local function difference(own, theirs)
  local at = 1
  while own:byte(at) == theirs:byte(at) do
    at = at + 1
  end
  at = math.max(1, at - 80)
  return ("ours: %s\nzsh: %s"):format(own:sub(at, at + 160), theirs:sub(at, at + 160))
end

local function check(texts)
  local compared = 0
  for i, asked in ipairs(judge.ask(texts, "print")) do
    local ok, own, theirs = same(texts[i], asked.printed)
    if ok == false then
      error(("%s\n%s"):format(texts[i]:sub(1, 400), difference(own, theirs)))
    end
    compared = compared + (ok and 1 or 0)
  end
  return compared
end

describe("what zsh prints of what it read", function()
  it("has the shape of each function file", function()
    local texts = {}
    for path in io.popen("find /usr/share/zsh/functions -type f ! -name '*.zwc' | sort"):lines() do
      local file = assert(io.open(path, "rb"))
      texts[#texts + 1] = file:read("a")
      file:close()
    end
    assert(check(texts) >= 0.9 * #texts)
  end)

  it("has the shape of generated lines", function()
    local gen = generator.new(31)
    for _ = 1, LONG and 8 or 1 do
      local lines = {}
      for i = 1, 1000 do
        lines[i] = gen:line()
      end
      assert(check(lines) > 500)
    end
  end)

  it("has the shape of changed lines", function()
    local gen = generator.new(32)
    for _ = 1, LONG and 4 or 1 do
      local lines = {}
      for i = 1, 1000 do
        lines[i] = gen:mutate(gen:line()):gsub("%z", "")
      end
      assert(check(lines) > 100)
    end
  end)
end)
