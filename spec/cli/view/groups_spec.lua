-- Groups of changed files: the globs of the settings, their order, the words. Pure.
local groups = require "efr.cli.view.groups"

describe("groups of changed files", function()
  local defaults = {}
  for _, key in ipairs(require("efr.config.sections.diff_groups").keys) do
    defaults[key.name] = key.default
  end

  for path, group in pairs {
    ["src/a.rs"] = "code", ["a"] = "code", ["Cargo.lock"] = "generated", ["x/dist/a.js"] = "generated",
    ["dist/README.md"] = "generated", ["a.min.js"] = "generated", ["tests/a.rs"] = "tests",
    ["x/spec/y/z.lua"] = "tests", ["src/a_test.go"] = "tests", ["contest/a"] = "code",
    ["a_test.d/b"] = "code", ["docs/a.c"] = "docs", ["README.md"] = "docs", ["README.mdx"] = "code",
    ["tests/README.md"] = "tests", ["amin.js"] = "code", ["/home/u/docs/x"] = "docs",
  } do
    it("has " .. path .. " in " .. group, function()
      assert.equal(group, groups.of(path, groups.compile(defaults)))
    end)
  end

  it("follows the settings, each sign of a glob for itself", function()
    local mine = groups.compile { tests = { "a?.[x]", "q/*/z" }, docs = { "**/w" } }
    assert.equal("tests", groups.of("ab.[x]", mine))
    assert.equal("code", groups.of("ab.x", mine))
    assert.equal("tests", groups.of("p/q/r/z", mine))
    assert.equal("code", groups.of("q/r/s/z", mine))
    assert.equal("docs", groups.of("a/b/w", mine))
    assert.equal("code", groups.of("README.md", mine))
  end)

  it("counts and sorts code first and generated last", function()
    local files = { { path = "a.lock" }, { path = "a.md" }, { path = "a.c" }, { path = "b.c" } }
    local compiled = groups.compile(defaults)
    assert.equal("2 code, 1 docs, 1 generated", groups.words(files, compiled))
    assert.equal("a.c", groups.sort(files, compiled)[1].path)
    assert.equal("a.lock", groups.sort(files, compiled)[4].path)
    assert.is_nil(groups.words({ { path = "a.c" } }, compiled))
  end)
end)
