local diff = require "efr.util.diff"

-- Applies the lines of a diff: what is kept or added must be new, what is kept or removed old.
local function rebuild(lines)
  local old, new = {}, {}
  for _, line in ipairs(lines) do
    if line.tag ~= "+" then old[#old + 1] = line.text end
    if line.tag ~= "-" then new[#new + 1] = line.text end
  end
  return table.concat(old), table.concat(new)
end

local function random_text(random, lines)
  local out = {}
  for i = 1, lines do out[i] = string.char(96 + random(4)) end
  return table.concat(out, "\n") .. (random(2) == 1 and "\n" or "")
end

-- The fewest edits by the plain table of longest common subsequences.
local function fewest(a, b)
  local row = {}
  for j = 0, #b do row[j] = 0 end
  for i = 1, #a do
    local diagonal = 0
    for j = 1, #b do
      local up = row[j]
      row[j] = a[i] == b[j] and diagonal + 1 or math.max(up, row[j - 1])
      diagonal = up
    end
  end
  return #a + #b - 2 * row[#b]
end

describe("util.diff", function()
  it("is empty for equal texts", function()
    assert.same({ "", 0, 0 }, { diff.unified("a\nb\n", "a\nb\n") })
    assert.same({ "", 0, 0 }, { diff.unified("", "") })
  end)

  it("shows context, numbers and the missing last line feed", function()
    local old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    local new = "1\n2\n3\n4\nfive\n6\n7\n8\n9"
    local text, added, removed = diff.unified(old, new, { context = 1, path = "f" })
    assert.equal(table.concat({
      "--- f", "+++ f", "@@ -4,3 +4,3 @@", " 4", "-5", "+five", " 6", "@@ -8,2 +8,2 @@", " 8",
      "-9", "+9", "\\ No newline at end of file", "",
    }, "\n"), text)
    assert.same({ 2, 2 }, { added, removed })
  end)

  it("numbers an empty side as git does", function()
    assert.equal("@@ -0,0 +1,2 @@\n+a\n+b\n", (diff.unified("", "a\nb\n")))
    assert.equal("@@ -1 +0,0 @@\n-a\n", (diff.unified("a\n", "")))
    assert.equal("@@ -2,0 +3 @@\n+c\n", (diff.unified("a\nb\n", "a\nb\nc\n", { context = 0 })))
  end)

  it("is correct and minimal on generated texts", function()
    math.randomseed(7)
    for _ = 1, 400 do
      local a = random_text(math.random, math.random(0, 12))
      local b = random_text(math.random, math.random(0, 12))
      local lines, added, removed = diff.lines(a, b)
      assert.same({ a, b }, { rebuild(lines) })
      local la, lb = {}, {}
      for line in a:gmatch("[^\n]*\n?") do if line ~= "" then la[#la + 1] = line end end
      for line in b:gmatch("[^\n]*\n?") do if line ~= "" then lb[#lb + 1] = line end end
      assert.equal(fewest(la, lb), added + removed)
    end
  end)

  it("stays correct over the limit of its table", function()
    local a, b = {}, {}
    for i = 1, 4000 do a[i], b[i] = "a" .. i, "b" .. i end
    b[2000] = "a2000"
    local old, new = table.concat(a, "\n"), table.concat(b, "\n")
    local lines, added, removed = diff.lines(old, new)
    assert.same({ old, new }, { rebuild(lines) })
    assert.same({ 4000, 4000 }, { added, removed })
  end)

  it("cuts by lines and by bytes and says so", function()
    local new = ("x\n"):rep(500)
    local text = diff.unified("", new, { max_lines = 200 })
    assert.equal("[... 301 more lines of the diff]", text:match("([^\n]*)\n$"))
    assert.is_true(#diff.unified("", new, { max_bytes = 100 }) < 150)
  end)
end)
