-- Owns: the settings of [diff.groups].
-- Must not know: how a glob is matched.

local function group(name, default, doc)
  return {
    name = name, type = "list", client = true, default = default, doc = doc,
    items = { type = "string", pattern = "^[^%c]+$", shape = "a glob" },
  }
end

return {
  name = "diff.groups",
  doc = "Which changed files belong together. Without a slash a glob is about names, else about "
    .. "the end of paths; ** stands for any folders. Generated counts before tests, tests before "
    .. "docs; what fits none is code.",
  keys = {
    group("generated", { "*.lock", "package-lock.json", "*.min.js", "dist/**", "*_pb2.py" },
      "What tools write. Listed last."),
    group("tests", { "test/**", "tests/**", "spec/**", "*_test.*", "*.test.*", "*_spec.*" },
      "Tests."),
    group("docs", { "docs/**", "*.md", "*.rst", "*.txt" }, "Documents."),
  },
}
