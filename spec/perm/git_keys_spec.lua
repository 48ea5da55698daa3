-- The keys of git configs that run code: one by one from the data table, and the reading of listings.
local data = require "efr.perm.data.git_keys"
local git_keys = require "efr.perm.git_keys"
local list = require "efr.util.list"

local function runs(key, value) return git_keys.runs_code({ key = key, value = value }) end

-- A value that counts for each pattern of the table.
local MATCHING = { ["^[%w+.-]+::"] = "ext::sh -c x", ["^!"] = "!program", ["^[!-]"] = "-c x=y z",
  ["%%[-+ ]?G"] = "%h %G?" }

local function example(rule) return rule.matches and assert(MATCHING[rule.matches]) or "program" end

describe("perm.git_keys", function()
  for _, name in ipairs(list.keys(data.plain)) do
    local rule = data.plain[name]
    it("knows " .. name, function()
      assert.is_true(runs(name, example(rule)))
      assert.is_true(runs(name:upper(), example(rule)))
      local off = rule.matches or rule.unless and rule.unless["true"]
      assert.are.equal(not off, runs(name, nil))
      local section, variable = name:match("^(.*)%.(.*)$")
      assert.is_false(runs(section .. ".x" .. variable, "program"))
      for value in pairs(rule.unless or {}) do
        assert.is_false(runs(name, value))
        assert.is_false(runs(name, value:upper()))
        assert.is_true(runs(name, value .. " x"))
      end
    end)
  end

  for _, name in ipairs(list.keys(data.any_subsection)) do
    it("knows " .. name .. " below any subsection", function()
      local section, variable = name:match("^(.*)%.(.*)$")
      for _, sub in ipairs { "x", "a.b", "", "with\nline", "\255" } do
        local value = example(data.any_subsection[name])
        assert.is_true(runs(section .. "." .. sub .. "." .. variable, value))
        assert.is_false(runs(section .. "." .. sub .. "." .. variable .. "x", value))
      end
    end)
  end

  for _, name in ipairs(list.keys(data.sections)) do
    local rule = data.sections[name]
    it("knows every key of " .. name, function()
      assert.is_true(runs(name .. ".any", example(rule)))
      assert.is_true(runs(name .. ".sub.any", example(rule)))
      assert.is_false(runs(name .. "x.any", example(rule)))
      if rule.matches then assert.is_false(runs(name .. ".any", "log --oneline")) end
      for value in pairs(rule.unless or {}) do assert.is_false(runs(name .. ".any", value)) end
    end)
  end

  it("leaves ordinary settings alone", function()
    for _, key in ipairs {
      "user.name", "core.bare", "remote.origin.url", "remote.origin.fetch", "branch.main.merge",
      "core.filemode", "core.worktree", "merge.conflictstyle", "diff.algorithm", "gpg.format",
      "push.default", "extensions.worktreeconfig", "remote.x.url", "submodule.x.update",
      "alias.st",
    } do
      assert.is_false(runs(key, "x"))
    end
  end)

  it("reads a listing", function()
    local entries = assert(git_keys.parse("core.bare\nfalse\0core.fsmonitor\0a.b\nx\ny\n\0"))
    assert.same({
      { key = "core.bare", value = "false" }, { key = "core.fsmonitor" },
      { key = "a.b", value = "x\ny\n" },
    }, entries)
    assert.same({ { key = "core.fsmonitor" } }, git_keys.code(entries))
    assert.same({}, git_keys.parse(""))
    for _, bad in ipairs { "a.b\nx", "\0", "\nx\0", "a.b\nx\0\0" } do
      assert.is_nil(git_keys.parse(bad))
    end
    assert.is_nil(git_keys.parse(("a.b\0"):rep(git_keys.MAX_ENTRIES + 1)))
  end)
end)
