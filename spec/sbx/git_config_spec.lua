-- Reading the text of a git config: each rule of its syntax, and whether git reads the same, where
-- git is there to ask.
local git_config = require "efr.sbx.git_config"

local function listed(text)
  local out = {}
  for _, setting in ipairs(git_config.parse(text)) do
    out[#out + 1] = setting.key .. (setting.value and "=" .. setting.value or "")
  end
  return table.concat(out, "|")
end

local ROWS <const> = {
  { "[a]\nb = c\n", "a.b=c" }, { "[a]b=c", "a.b=c" }, { "[A-1]\n\tB-2\t=\tc d \n", "a-1.b-2=c d" },
  { '[a "X \\"y\\\\"]\nb=c', 'a.X "y\\.b=c' }, { "[a.Sub]\nb=c", "a.sub.b=c" },
  { "[a]\nb", "a.b" }, { "[a]\nb ; x\nc # y\n", "a.b|a.c" }, { "[a]\nb=", "a.b=" },
  { "[a]\nb = x;y\nc = x # y\n", "a.b=x|a.c=x" }, { '[a]\nb = "x;#y"\n', "a.b=x;#y" },
  { '[a]\nb = " x "  y  \n', "a.b= x   y" }, { "[a]\nb = x\\\n  y\nc=z", "a.b=x  y|a.c=z" },
  { '[a]\nb = \\t\\n\\"\\\\\\b\n', 'a.b=\t\n"\\\b' }, { "[a]\r\nb = c\r\n", "a.b=c" },
  { "\239\187\191[a]\nb=c", "a.b=c" }, { "; [x]\n# y\n[a]\nb=c\n[d]\n", "a.b=c" },
  { "[a]\nb=\"c\"d\n", "a.b=cd" }, { "[a]\nb=1\nb=2\n", "a.b=1|a.b=2" }, { "", "" },
  { '[a ""]\nb=c', "a..b=c" },
}
-- What git refuses: that line goes, the rest counts.
local BROKEN <const> = {
  { "[a]\nb = \"c\nd = e\n", "a.d=e" }, { "[a]\nb = \\x\nd = e", "a.d=e" },
  { "[a\nb = c\n[d]\ne = f\n", "d.e=f" }, { "[a]\n1b = c\nd = e\n", "a.d=e" },
  { '[a "b\n"]\nc=d\n[e]\nf=g', "e.f=g" }, { "[a]\nb c = d\ne=f", "a.e=f" },
}

describe("sbx.git_config", function()
  it("reads the syntax", function()
    for _, row in ipairs(ROWS) do assert.equal(row[2], listed(row[1]), row[1]) end
  end)

  it("leaves out what git cannot read, and reads on", function()
    for _, row in ipairs(BROKEN) do assert.equal(row[2], listed(row[1]), row[1]) end
  end)

  it("reads what git reads, in generated files", function()
    local name = os.tmpname()
    local function git()
      local pipe = assert(io.popen(("git config --file %s --list -z 2>/dev/null; echo $?"):format(name)))
      local out = pipe:read("a")
      pipe:close()
      return out:match("^(.*)0\n$")
    end
    local tokens = { "[core]", '[a "b c"]', '[a "x\\"y"]', "[A.Bc]", "\n", "\n", "\n", "  ", "\t",
      "pager", "Key-1", " = ", "=", "value", '"q v"', ' "a;b" ', "#c", "; x", "\\n", "\\t", "\\\\",
      '\\"', "\\\n", "x y", '"', "[", "\r\n", "0", "include", "path", " [core] k = v", "\\b", "\n" }
    math.randomseed(tonumber(os.getenv("EFR_TEST_SEED") or 7))
    local compared, rounds = 0, os.getenv("EFR_TEST_SIZE") == "long" and 20000 or 200
    for _ = 1, rounds do
      local parts = { "[core]\n" }
      for i = 2, math.random(2, 14) do parts[i] = tokens[math.random(#tokens)] end
      local text = table.concat(parts)
      local file = assert(io.open(name, "wb"))
      file:write(text)
      file:close()
      local wanted = git()
      if wanted then
        compared = compared + 1
        local out = {}
        for _, setting in ipairs(git_config.parse(text)) do
          out[#out + 1] = setting.key .. (setting.value and "\n" .. setting.value or "") .. "\0"
        end
        -- git before 2.45 makes a blank of each tab between words.
        local function blanks(bytes) return (bytes:gsub("[\t\r]", " ")) end
        assert.equal(blanks(wanted), blanks(table.concat(out)), text)
      end
    end
    os.remove(name)
    assert.is_true(compared > rounds // 10, compared .. " files were fit to compare")
  end)
end)
