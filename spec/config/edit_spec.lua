local edit = require "efr.config.edit"
local lines = require "efr.config.lines"
local toml = require "efr.config.toml"

local function set(text, name, value)
  return assert(edit.set(text, name, value))
end

describe("config.edit", function()
  it("changes a value and nothing else", function()
    local rows = {
      { 'a = 1 # one\r\n[s]\r\nk = "x"   # two\r\n', "s.k", "y",
        'a = 1 # one\r\n[s]\r\nk = "y"   # two\r\n' },
      { "[s]\nk=[ 1,2 ]#c\nl = 1", "s.k", { "a" }, '[s]\nk=["a"]#c\nl = 1' },
      { "s.k = 1 # c\n", "s.k", true, "s.k = true # c\n" },
      { "s = { k = 1, l = 2 }\n", "s.k", 3, "s = { k = 3, l = 2 }\n" },
      { "[s]\nk = '''\na\n''' # c\n", "s.k", "b\n\"c\\\1", '[s]\nk = "b\\n\\"c\\\\\\u0001" # c\n' },
      { '"s"."k" = 1\n', "s.k", 2, '"s"."k" = 2\n' },
    }
    for _, row in ipairs(rows) do assert.equal(row[4], set(row[1], row[2], row[3])) end
  end)

  it("puts a new key where it belongs, and takes it away without a trace", function()
    local rows = {
      { "", "s.k", 1, "[s]\nk = 1\n" },
      { "", "k", 1, "k = 1\n" },
      { "\xEF\xBB\xBF", "k", 1, "\xEF\xBB\xBFk = 1\n" },
      { "# c", "k", 1, "# c\nk = 1" },
      { "# c", "s.k", 1, "# c\n\n[s]\nk = 1" },
      { "# c\r\n", "s.k", 1, "# c\r\n\r\n[s]\r\nk = 1\r\n" },
      { "\n", "s.k", 1, "\n\n[s]\nk = 1\n" },
      { "a = 1\n[s]\n", "k", 1, "a = 1\nk = 1\n[s]\n" },
      { "[s]\na = 1\n", "k", 1, "k = 1\n\n[s]\na = 1\n" },
      { "# top\n\n# of s\n[s]\na = 1\n", "k", 1, "# top\n\nk = 1\n\n# of s\n[s]\na = 1\n" },
      { "# k = 1\n\n[s]\na = 1\n", "k", 2, "# k = 1\nk = 2\n\n[s]\na = 1\n" },
      { "[s]\na = 1 # c\n\n[t]\nb = 1\n", "s.k", 1, "[s]\na = 1 # c\nk = 1\n\n[t]\nb = 1\n" },
      { "[s]\n# k = 1\n# more\na = 1\n", "s.k", 2, "[s]\n# k = 1\nk = 2\n# more\na = 1\n" },
      { "[s]\na = '''\n# k = 1\n'''\n", "s.k", 2, "[s]\na = '''\n# k = 1\n'''\nk = 2\n" },
      { "[s]\n", "s.k", 1, "[s]\n\nk = 1\n" },
      { "[s]", "s.k", 1, "[s]\n\nk = 1" },
      { "[s] # c\n", "s.k", 1, "[s] # c\nk = 1\n" },
      { "[s]\n# c\n", "s.k", 1, "[s]\nk = 1\n# c\n" },
      { "s.a = 1\nb = 2\n", "s.k", 1, "s.a = 1\ns.k = 1\nb = 2\n" },
      { "s = { a = 1 }\n", "s.k", 1, "s = { a = 1, k = 1 }\n" },
      { "s = {}\n", "s.k", 1, "s = {k = 1}\n" },
      { "s = { }\n", "s.k", 1, "s = { k = 1 }\n" },
      { "[s.t]\na = 1\n", "s.k", 1, "[s.t]\na = 1\n\n[s]\nk = 1\n" },
      { "[[r]]\na = 1\n", "s.k", 1, "[[r]]\na = 1\n\n[s]\nk = 1\n" },
      { "[s]\na = [\n  1, # one\n]\n", "s.k", 1, "[s]\na = [\n  1, # one\n]\nk = 1\n" },
    }
    for _, row in ipairs(rows) do
      local text = set(row[1], row[2], row[3])
      assert.equal(row[4], text)
      assert.equal(row[1], assert(edit.unset(text, row[2])))
    end
  end)

  it("takes a key of the file out with its line", function()
    local rows = {
      { "[s]\n# a\nk = 1 # b\n# c\nl = 2\n", "s.k", "[s]\n# a\n# c\nl = 2\n" },
      { "[s]\nk = [\n  1, # b\n]\nl = 2\n", "s.k", "[s]\nl = 2\n" },
      { "s = { k = 1, l = 2 }\n", "s.k", "s = { l = 2 }\n" },
      { "s = { l = 2, k = 1 }\n", "s.k", "s = { l = 2 }\n" },
      { "a = 1\n\n[s]\nk = 1\n\n[t]\nb = 1\n", "s.k", "a = 1\n\n[t]\nb = 1\n" },
      { "# of s\n[s]\nk = 1\n", "s.k", "# of s\n[s]\n" },
      { "[s]\nk = 1\n", "s.nothing", "[s]\nk = 1\n" },
      { "[s]\nk = 1\n", "t.nothing", "[s]\nk = 1\n" },
      { "[[s.k]]\na = 1\n# keep\n\n[[s.k]]\nb = 2\n", "s.k", "# keep\n" },
    }
    for _, row in ipairs(rows) do assert.equal(row[3], assert(edit.unset(row[1], row[2]))) end
  end)

  it("keeps the layout and the comments of a list of several lines", function()
    local text = "k = [ # why\n  \"a\", # of a\n  \"b\", # of b\n  # at the end\n]\n"
    assert.equal("k = [ # why\n  \"a\", # of a\n  \"b\", # of b\n  \"c\",\n  # at the end\n]\n",
      set(text, "k", { "a", "b", "c" }))
    assert.equal("k = [ # why\n  \"b\", # of b\n  # at the end\n]\n", set(text, "k", { "b" }))
    assert.equal("k = [ # why\n  # at the end\n]\n", set(text, "k", {}))
    assert.equal("k = [ # why\n  \"b\", # of b\n  \"a\",\n  # at the end\n]\n",
      set(text, "k", { "b", "a" }))
    assert.equal("k = [\n  1, # x\n  2\n]\n", set("k = [\n  1 # x\n]\n", "k", { 1, 2 }))
    assert.equal("k = [\n  # none\n  1,\n]\n", set("k = [\n  # none\n]\n", "k", { 1 }))
    assert.equal("k = [1,\n  2, 3]\n", set("k = [1,\n  2]\n", "k", { 1, 2, 3 }))
  end)

  it("adds and removes entries of an array of tables", function()
    local fields = { { "action", "any" }, { "resource", { class = "system" } },
      { "list", { "a", "b" } } }
    local block = '[[p.r]]\naction = "any"\nresource = { class = "system" }\n' ..
      'list = ["a", "b"]\n'
    local rows = {
      { "", block },
      { "# c\n", "# c\n\n" .. block },
      { "# c", "# c\n\n" .. block:sub(1, -2) },
      { "[[p.r]]\na = 1\n# c\n\n[x]\nb = 1\n",
        "[[p.r]]\na = 1\n\n" .. block .. "# c\n\n[x]\nb = 1\n" },
      { "[[p.r]]\n[p.r.sub]\na = 1\n", "[[p.r]]\n[p.r.sub]\na = 1\n\n" .. block },
      { "[p]\nr = [{a = 1}]\n",
        '[p]\nr = [{a = 1}, { action = "any", list = ["a", "b"], ' ..
        'resource = { class = "system" } }]\n' },
    }
    for _, row in ipairs(rows) do
      local text = assert(edit.add_entry(row[1], "p.r", fields))
      assert.equal(row[2], text)
      local count = #toml.parse(text).p.r
      assert.equal(row[1], assert(edit.remove_entry(text, "p.r", count)))
    end
    local text = "[[r]]\na = 1\n\n# of two\n[[r]]\na = 2\n[r.s]\nb = 1 # c\n\n[[r]]\na = 3\n"
    assert.equal("[[r]]\na = 1\n\n# of two\n[[r]]\na = 3\n",
      assert(edit.remove_entry(text, "r", 2)))
    assert.is_nil(edit.remove_entry(text, "r", 4))
  end)

  it("refuses what it cannot do, and says so", function()
    local function refused(code, ...)
      local text, err, which = edit.set(...)
      assert.is_nil(text)
      assert.equal(code, which)
      return err
    end
    assert.equal("line 1 column 5: a value is expected, not the end of the line",
      refused("EFR_CONFIG", "k = \n", "k", 1))
    assert.equal("s is no table", refused("EFR_LAYOUT", "s = 1\n", "s.k", 1))
    assert.equal("s is no table", refused("EFR_LAYOUT", "s = 1979-05-27\n", "s.k", 1))
    assert.equal("s.k is a table; use an editor", refused("EFR_LAYOUT", "[s.k]\na = 1\n", "s.k", 1))
    assert.is_nil(edit.unset("[s.k]\na = 1\n", "s.k"))
  end)

  it("writes values that read as they were", function()
    for _, value in ipairs { "a\0\r\n\t\"\\\x7f\u{e9}", 0, -1, math.maxinteger, math.mininteger,
      1.5, 1e300, -0.1, 100.0, true, false, { "a", 1, { "b" } } } do
      local root = assert(toml.parse("k = " .. lines.value(value)))
      assert.same(value, root.k)
      assert.equal(math.type(value), math.type(root.k))
    end
  end)
end)

-- Files of every layout, and changes in any order.

local KEYS <const> = { "log", "s.name", "s.list", "s.flag", "t.name", "t.list", "u.flag" }

local function generator(seed)
  math.randomseed(seed)
  local count = 0
  local self = {}
  function self.pick(t) return t[math.random(#t)] end
  function self.comment()
    count = count + 1
    return ("# c%d;"):format(count)
  end
  function self.value(name)
    if name:find("flag") then return math.random(2) == 1 end
    if not name:find("list") then return self.pick { "a", "b # no comment", "c\nd", "[s]" } end
    local out = {}
    for _ = 1, math.random(0, 4) do out[#out + 1] = self.pick { "x", "y", "z", "# w", "v, w" } end
    return out
  end
  function self.written(name)
    local value = self.value(name)
    if type(value) ~= "table" or math.random(2) == 1 then return lines.value(value) end
    local out = { "[" .. self.pick { "", " " .. self.comment() } }
    for i, item in ipairs(value) do
      local comma = i < #value and "," or self.pick { "", "," }
      out[#out + 1] = "  " .. lines.value(item) .. comma .. self.pick { "", " " .. self.comment() }
      if math.random(4) == 1 then out[#out + 1] = "  " .. self.comment() end
    end
    out[#out + 1] = "]"
    return table.concat(out, "\n")
  end
  return self
end

-- The text of a section's body.
local function body_of(g, prefix, names)
  local out = {}
  for _, name in ipairs(names) do
    if math.random(3) == 1 then out[#out + 1] = g.pick { "", g.comment() } end
    local key = name:match("[^.]+$")
    if math.random(4) == 1 then out[#out + 1] = "#" .. key .. " = 1 " .. g.comment() end
    if math.random(2) == 1 then
      out[#out + 1] = prefix .. key .. " = " .. g.written(name) ..
        g.pick { "", "  " .. g.comment() }
    end
  end
  return out
end

local function file_of(g)
  local out = body_of(g, "", { "log" })
  local function add(more) table.move(more, 1, #more, #out + 1, out) end
  local sections = { s = { "s.name", "s.list", "s.flag" }, t = { "t.name", "t.list" } }
  local dotted = g.pick { "s", "t", "none" }
  if sections[dotted] then add(body_of(g, dotted .. ".", sections[dotted])) end
  if math.random(3) == 1 then out[#out + 1] = "u = { flag = true } " .. g.comment() end
  for _, name in ipairs { "s", "t" } do
    if name ~= dotted and math.random(4) > 1 then
      if math.random(2) == 1 then out[#out + 1] = g.pick { "", g.comment() } end
      out[#out + 1] = ("[%s]"):format(name) .. g.pick { "", " " .. g.comment() }
      add(body_of(g, "", sections[name]))
    end
  end
  local text = table.concat(out, "\n") .. g.pick { "", "\n", "\n\n" }
  return math.random(4) == 1 and (text:gsub("\n", "\r\n")) or text
end

local function lookup(root, name)
  for part in name:gmatch("[^.]+") do root = type(root) == "table" and root[part] or nil end
  return root
end

local function values_of(text)
  local root, err = toml.parse(text)
  if not root then error(err .. "\n" .. text) end
  local out = {}
  for _, name in ipairs(KEYS) do
    local section, key = root, name
    if name:find("%.") then section, key = root[name:match("^[^.]+")], name:match("[^.]+$") end
    if section then out[name] = section[key] end
  end
  return out
end

-- The comments (as the generator makes them) that a change of a key may take away: those on its own
-- lines for an unset, those on the lines of items for a set (the examples above say which stay).
local function may_go(text, name, value)
  local root, document = toml.parse(text)
  local section = name:find("%.") and lookup(root, name:match("^[^.]+")) or root
  local entry = section and document.where[section][name:match("[^.]+$")]
  local out = {}
  if not entry then return out end
  local at = entry.key_from
  local function take(from, to)
    for tag in text:sub(from, to):gmatch("# c%d+;") do out[tag] = true end
  end
  if value == nil then
    if not text:sub(lines.first(text, at), at):find("{") then
      take(at, lines.after(text, entry.to) - 1)
    end
  elseif type(value) == "table" then
    local old = section[name:match("[^.]+$")]
    for _, place in pairs(document.where[old]) do
      take(place.from, lines.after(text, place.to) - 1)
    end
  end
  return out
end

local function check_comments(before, after, gone)
  for tag in before:gmatch("# c%d+;") do
    assert(gone[tag] or after:find(tag, 1, true), tag .. " is lost:\n" .. before ..
      "\n--\n" .. after)
  end
end

describe("config.edit, any file and any change", function()
  it("keeps the values of the others and every comment", function()
    local refusals, changes = 0, 0
    for seed = 1, 400 do
      local g = generator(seed)
      local text = file_of(g)
      local wanted = values_of(text)
      for _ = 1, 12 do
        local name = g.pick(KEYS)
        local value
        if math.random(3) > 1 then value = g.value(name) end
        local fresh, _, code
        if value == nil then
          fresh, _, code = edit.unset(text, name)
        else
          fresh, _, code = edit.set(text, name, value)
        end
        changes = changes + 1
        if fresh then
          wanted[name] = value
          assert.same(wanted, values_of(fresh))
          check_comments(text, fresh, may_go(text, name, value))
          if text:find("\r\n", 1, true) then assert.is_nil(fresh:find("[^\r]\n")) end
          text = fresh
        else
          assert.equal("EFR_LAYOUT", code)
          refusals = refusals + 1
        end
      end
    end
    assert(refusals * 100 < changes, refusals .. " refusals")
  end)

  it("is undone by an unset", function()
    local done = 0
    for seed = 1, 1500 do
      local g = generator(seed)
      local text = file_of(g)
      local name = g.pick(KEYS)
      if values_of(text)[name] == nil then
        local fresh = edit.set(text, name, g.value(name))
        if fresh then
          assert.equal(text, assert(edit.unset(fresh, name)))
          done = done + 1
        end
      end
    end
    assert(done > 500, done .. " tried")
  end)
end)
