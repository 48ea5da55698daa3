-- What is made of the sections: the commented example, the JSON schema, values of a command line.

local colour = require "efr.config.colour"
local edit = require "efr.config.edit"
local example = require "efr.config.example"
local json_schema = require "efr.config.json_schema"
local load_config = require "efr.config.load"
local modules = require "efr.modules"
local schema = require "efr.config.schema"
local words = require "efr.config.words"

local SCHEMA = schema.load(modules.list)
local TEXT = example.text(SCHEMA)

local function read(text)
  return load_config.load { schema = SCHEMA, text = text, home = "/home/u" }
end

describe("config.example", function()
  it("changes nothing as it is, and every line of it can be used", function()
    local config = assert(read(TEXT))
    local defaults = config
    for _, name in ipairs(SCHEMA.order) do assert.equal("default", config:source(name)) end
    local used = TEXT:gsub("\n#([%w_%[])", "\n%1")
    config = assert(read(used))
    for _, name in ipairs(SCHEMA.order) do assert.equal("file", config:source(name)) end
    for _, name in ipairs(SCHEMA.order) do
      local key = SCHEMA.keys[name]
      if key.default ~= nil and key.type ~= "rules" and key.type ~= "allow" then
        assert.same(defaults:get(name), config:get(name))
      end
    end
  end)

  it("takes a key below its commented line and gives it back", function()
    for _, name in ipairs(SCHEMA.order) do
      local key = SCHEMA.keys[name]
      if key.type ~= "rules" and key.type ~= "allow" and key.default ~= nil then
        local text = assert(edit.set(TEXT, name, key.default))
        assert.is_truthy(text:find(("\n#%s = [^\n]*\n%s = "):format(key.name, key.name)), name)
        assert.equal("file", assert(read(text)):source(name))
        assert.equal(TEXT, edit.unset(text, name))
      end
    end
  end)

  it("stands in docs/examples/config.toml (EFR_UPDATE_GOLDEN=1 writes it)", function()
    local path = (os.getenv("EFR_SOURCE") or ".") .. "/docs/examples/config.toml"
    if os.getenv("EFR_UPDATE_GOLDEN") then
      local out = assert(io.open(path, "w"))
      out:write(TEXT)
      out:close()
    end
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    assert.equal(TEXT, text)
  end)
end)

describe("config.json_schema", function()
  it("has every key with its kind", function()
    local built = json_schema.build(SCHEMA)
    assert.is_false(built.additionalProperties)
    for _, section in ipairs(SCHEMA.sections) do
      local place = built
      for name in section.name:gmatch("[^.]+") do place = place.properties[name] end
      for _, key in ipairs(section.keys) do
        local property = place.properties[key.name]
        assert.equal(key.doc, property.description)
        assert(property.type or property.enum or property.anyOf, key.name)
      end
    end
    local model = built.properties.openai_compatible.properties.models.items.anyOf[2]
    assert.same({ "id" }, model.required)
    assert.same({ type = "integer", minimum = 1, maximum = 1024, default = 16,
      description = SCHEMA.keys["conversation.max_queued"].doc },
      built.properties.conversation.properties.max_queued)
  end)
end)

describe("config.words", function()
  local function value(name, text) return words.read(SCHEMA.keys[name], text, "/home/u") end

  it("reads each kind", function()
    assert.equal("auto", value("permissions.mode", "auto"))
    assert.equal(3, value("conversation.max_queued", "3"))
    assert.is_false(value("sandbox.enabled", "false"))
    assert.same({ "~/a", "/b c" }, value("sandbox.mask", " ~/a, /b c,"))
    assert.same({}, value("sandbox.mask", ""))
    assert.equal("bright-blue", value("render.colors.link", "bright-blue"))
    assert.equal("7", value("render.colors.diff.add", "7"))
    assert.same({ "m", { id = "n" } }, value("openai_compatible.models", '["m", {id = "n"}]'))
    assert.equal("1, 2", value("model.name", "1, 2"))
  end)

  it("refuses what the file could not hold", function()
    local rows = {
      { "permissions.mode", "fast", "must be one of manual, cautious, auto, full" },
      { "conversation.max_queued", "0", "must be between 1 and 1024" },
      { "conversation.max_queued", "1.5", "must be an integer" },
      { "sandbox.enabled", "yes", "must be true or false" },
      { "sandbox.mask", "/a,b", "item 1 must be absolute or start with ~/, not b" },
      { "sandbox.mask", "[1", 'must be a list: a,b or ["a", "b"]' },
      { "model.name", "", "must not be empty" },
      { "render.colors.link", "16", "must be " .. colour.SHAPE },
      { "render.colors.link", "#12345", "must be " .. colour.SHAPE },
      { "permissions.rules", "[]", "is a list of tables; use efr config edit" },
    }
    for _, row in ipairs(rows) do
      local got, err = value(row[1], row[2])
      assert.is_nil(got)
      assert.equal(row[3], err)
    end
  end)
end)
