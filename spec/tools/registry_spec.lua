local fake = require "spec.tools.fake"
local modules = require "efr.modules"
local registry = require "efr.tools.registry"

local tools = registry.new { modules = modules, text = fake.text }

describe("tools.registry", function()
  it("finds the tools by folder", function()
    local names = {}
    for i, tool in ipairs(tools:list()) do names[i] = tool.name end
    assert.same({ "edit", "read_file", "shell", "write_file" }, names)
    assert.equal(tools:list()[3], tools:get("shell"))
    assert.is_nil(tools:get("no_such"))
  end)

  it("has a description and a schema that fit together", function()
    for _, tool in ipairs(tools:list()) do
      assert.is_true(#tool.description > 40 and #tool.description < 600)
      assert.equal("object", tool.schema.type)
      for _, name in ipairs(tool.schema.required) do
        assert.is_string(tool.schema.properties[name].description, tool.name)
      end
    end
  end)

  it("takes null for a parameter that is left out", function()
    -- Plain lua5.4 has no efr.json; any userdata will do there.
    local null = package.preload["efr.json"] and require("efr.json").null or io.stdout
    local ctx = fake.context {
      shell = function()
        return { outcome = "finished", output = "", exit_code = 0, cwd = "/" }
      end,
    }
    local input = { command = "x", timeout_seconds = null, nested_shell = null }
    assert.is_table((tools:get("shell").declare(input, ctx)))
    assert.is_false(tools:get("shell").run(input, ctx).is_error)
    assert.is_nil((tools:get("shell").declare({ command = null }, ctx)))
  end)

  it("cuts results and makes them text", function()
    local ctx = fake.context {
      shell = function()
        return { outcome = "finished", output = ("\xff\n"):rep(40000), exit_code = 0, cwd = "/" }
      end,
    }
    local result = tools:get("shell").run({ command = "x" }, ctx)
    assert.is_true(#result.output <= 32 * 1024)
    assert.is_truthy(utf8.len(result.output))
    assert.is_true(result.truncated)
    assert.is_truthy(result.output:find("\n[... ", 1, true))
    assert.is_truthy(result.output:find("[exit code 0, cwd /]", 1, true))
  end)
end)
