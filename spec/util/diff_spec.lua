local diff = require "efr.util.diff"

-- The lines with their line feeds.
local function split(text)
  local out = {}
  for line in text:gmatch("[^\n]*\n?") do
    if line ~= "" then out[#out + 1] = line end
  end
  return out
end

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

-- Applies a unified diff strictly: every context and removed line must be where it says.
local function apply(old, text)
  local lines, rows, out, at = split(old), {}, {}, 1
  for row in text:gmatch("([^\n]*)\n") do rows[#rows + 1] = row end
  for i, row in ipairs(rows) do
    local tag, body = row:sub(1, 1), row:sub(2)
    local feed = rows[i + 1] and rows[i + 1]:sub(1, 1) == "\\" and "" or "\n"
    if tag == "@" then
      local start, count = row:match("^@@ %-(%d+),?(%d*)")
      local first = count == "0" and start + 1 or tonumber(start)
      while at < first do out[#out + 1], at = lines[at], at + 1 end
    elseif tag == "+" then
      out[#out + 1] = body .. feed
    elseif tag ~= "\\" then
      assert(lines[at] == body .. feed, "line " .. at .. " is not " .. row)
      if tag == " " then out[#out + 1] = lines[at] end
      at = at + 1
    end
  end
  while lines[at] do out[#out + 1], at = lines[at], at + 1 end
  return table.concat(out)
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
      assert.equal(fewest(split(a), split(b)), added + removed)
    end
  end)

  it("gives the same text whether or not big equal parts are left out", function()
    math.randomseed(9)
    for _ = 1, 300 do
      local a = random_text(math.random, math.random(0, 30))
      local b = a
      for _ = 1, math.random(0, 2) do
        local at = math.random(0, #b)
        b = b:sub(1, at) .. ("xy\n"):sub(1, math.random(0, 3)) .. b:sub(at + math.random(0, 4))
      end
      local text, added, removed = diff.unified(a, b, { context = math.random(0, 3) })
      assert.is_true(apply(a, text) == b)
      local _, plus = ("\n" .. text):gsub("\n%+", "")
      local _, minus = ("\n" .. text):gsub("\n%-", "")
      assert.same({ plus, minus }, { added, removed })
    end
  end)

  it("reads a big file with a small change quickly", function()
    local old = ("a line of text\n"):rep(500000)
    local new = old:sub(1, 4000000) .. "!" .. old:sub(4000001)
    local text, added, removed = diff.unified(old, new)
    assert.same({ 1, 1 }, { added, removed })
    assert.is_truthy(text:find("^@@ %-266664,7 %+266664,7 @@\n"))
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
