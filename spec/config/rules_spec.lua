local load_config = require "efr.config.load"
local modules = require "efr.modules"
local schema = require "efr.config.schema"

local SCHEMA = schema.load(modules.list)

local function read(text)
  return load_config.load { schema = SCHEMA, text = text, path = "c.toml", home = "/home/u" }
end

local function rules_of(text)
  return assert(read(text)):get("permissions.rules")
end

-- One rule, from the values of its keys.
local function rule(action, resource, effect)
  return ('[[permissions.rules]]\naction = "%s"\nresource = %s\neffect = "%s"\n'):format(action,
    resource, effect)
end

local function refused(text)
  local config, err, code, place = read(text)
  assert.is_nil(config, text)
  assert.equal("EFR_CONFIG", code)
  assert.equal("permissions.rules", place.key)
  return (err:gsub("^c%.toml line %d+ column %d+: ", ""))
end

describe("config.rules", function()
  it("gives plain data in the order of the file", function()
    local text = rule("any", '"any"', "ask") .. rule("read", '{class = "secrets"}', "deny") ..
      rule("write", '{under = "~/.config/nvim/"}', "allow") .. rule("any", '"project"', "allow") ..
      rule("execute", [[{command = {program = "cargo", args = ["test|check", "l*"],
        forbid = ["--config", "-C", "--index*", "@"], min_operands = 0, max_operands = 2,
        max_options = 3, under = "~/p"}}]], "allow") ..
      rule("network", '{command = {program = "git", under = "scratch", check = "ref_names"}}',
        "deny")
    text = text:gsub("\n        ", " ") -- an inline table stands on one line
    assert.same({
      { index = 0, action = "any", resource = { any = true }, effect = "ask" },
      { index = 1, action = "read", resource = { class = "secrets" }, effect = "deny" },
      { index = 2, action = "write", resource = { under = "/home/u/.config/nvim" },
        effect = "allow" },
      { index = 3, action = "any", resource = { project = true }, effect = "allow" },
      { index = 4, action = "execute", effect = "allow", resource = { command = {
        program = "cargo", args = { "test|check", "l*" },
        forbid = { "--config", "-C", "--index*", "@" }, min_operands = 0, max_operands = 2,
        max_options = 3, under = "/home/u/p",
      } } },
      { index = 5, action = "network", effect = "deny", resource = { command = {
        program = "git", args = {}, forbid = {}, under = "scratch", check = "ref_names",
      } } },
    }, rules_of(text))
    assert.same({}, rules_of("[permissions]\nrules = []\n"))
    assert.same({}, rules_of(nil))
    assert.equal(1, #rules_of('[permissions]\nrules = [{action = "any", resource = "any", ' ..
      'effect = "ask"}]\n'))
  end)

  it("refuses what can never be meant, and names the rule", function()
    local function command(keys)
      return rule("execute", "{command = {program = \"x\", " .. keys .. "}}", "allow")
    end
    local forms = "any, project, {class = ...}, {under = ...} or {command = {...}}"
    local rows = {
      { rule("any", '"any"', "contain"), "has effect that is none of allow, ask, deny" },
      { rule("run", '"any"', "ask"),
        "has action that is none of any, read, write, execute, network" },
      { rule("any", '"envelope"', "ask"), "has a resource that is none of " .. forms },
      { rule("any", '{envelope = true}', "ask"), "has a resource that is none of " .. forms },
      { rule("any", '{class = "system", under = "/x"}', "ask"),
        "has a resource that is none of " .. forms },
      { rule("any", "[]", "ask"), "has a resource that is none of " .. forms },
      { rule("any", "{}", "ask"), "has a resource that is none of " .. forms },
      { rule("any", "2020-01-01", "ask"), "has a resource that is none of " .. forms },
      { rule("any", '{class = "home"}', "ask"),
        "has a class that is none of scratch, user_config, user_data, system, secrets" },
      { rule("any", '{under = "x/y"}', "ask"), "has under that must be absolute or start with ~/" },
      { rule("any", "{under = 1}", "ask"), "has under that must be a path" },
      { rule("any", "{command = 1}", "ask"), "has a command that is no table" },
      { rule("any", "{command = {}}", "ask"), "has a command without a program" },
      { rule("any", '{command = {program = "-x"}}', "ask"), "has a program that is no plain word" },
      { rule("any", '{command = {program = "=x"}}', "ask"), "has a program that is no plain word" },
      { rule("any", '{command = {program = "a b"}}', "ask"),
        "has a program that is no plain word" },
      { rule("any", '{command = {program = ""}}', "ask"), "has a program that is no plain word" },
      { rule("any", '{command = {program = "~/x"}}', "ask"),
        "has a program that is no plain word" },
      { command 'argv = []', "has a command with an unknown key 'argv'" },
      { command 'args = "x"', "has args that is no list" },
      { command 'args = ["ok", "a b"]', "has args with an item 1 that is no plain word" },
      { command 'args = ["-"]', "has args with an item 0 that is no plain word" },
      { command 'args = ["a|--"]', "has args with an item 0 that is no plain word" },
      { command 'args = ["a||b"]', "has args with an item 0 that is no plain word" },
      { command 'args = [""]', "has args with an item 0 that is no plain word" },
      { command 'args = ["*"]', "has args with an item 0 that is no plain word" },
      { command 'args = ["a*b"]', "has args with an item 0 that is no plain word" },
      { command 'forbid = ["x*"]', "has forbid with an item 0 that is no plain word or option" },
      { command 'forbid = ["-"]', "has forbid with an item 0 that is no plain word or option" },
      { command 'forbid = ["--"]', "has forbid with an item 0 that is no plain word or option" },
      { command 'forbid = ["--*"]', "has forbid with an item 0 that is no plain word or option" },
      { command 'forbid = ["$x"]', "has forbid with an item 0 that is no plain word or option" },
      { command "min_operands = -1", "has min_operands that is no integer between 0 and 10000" },
      { command "max_operands = 1.5", "has max_operands that is no integer between 0 and 10000" },
      { command 'max_options = "1"', "has max_options that is no integer between 0 and 10000" },
      { command "min_operands = 3, max_operands = 2", "has min_operands above max_operands" },
      { command 'under = "here"', "has a command with under that must be absolute or start with " ..
        "~/" },
      { command "under = 1", "has a command with under that must be a directory, project or " ..
        "scratch" },
      { command 'check = "pure"', "has a check that is none of ref_names, sed_print_only" },
      { command 'check = "sed_print_only"', "has the check sed_print_only, which is for sed" },
      { rule("execute", '{class = "system"}', "ask"), "has the action execute, which its " ..
        "resource never meets; it takes any, read, write" },
      { rule("network", '"project"', "ask"), "has the action network, which its resource never " ..
        "meets; it takes any, read, write" },
      { rule("execute", '{under = "/x"}', "ask"), "has the action execute, which its resource " ..
        "never meets; it takes any, read, write" },
      { rule("read", '{command = {program = "x"}}', "ask"), "has the action read, which its " ..
        "resource never meets; it takes any, execute, network" },
      { '[[permissions.rules]]\naction = "any"\n', "has no effect" },
      { '[[permissions.rules]]\neffect = "ask"\n', "has no action" },
      { '[[permissions.rules]]\naction = "any"\neffect = "ask"\n', "has no resource" },
      { rule("any", '"any"', "ask") .. "id = 1\n", "has an unknown key 'id'" },
      { "[permissions]\nrules = [1]\n", "must be a table" },
    }
    for _, row in ipairs(rows) do
      assert.equal("permissions.rules[0] " .. row[2], refused(row[1]))
    end
    assert.equal("permissions.rules must be tables [[permissions.rules]]",
      refused "[permissions.rules]\n")
    local good = rule("any", '"any"', "ask")
    assert.equal("permissions.rules[2] has effect that is none of allow, ask, deny",
      refused(good .. good .. rule("any", '"any"', "contain")))
  end)

  it("gives the place of the wrong word", function()
    local _, err, _, place = read(rule("any", '"any"', "ask") ..
      rule("execute", '{command = {program = "x", args = ["ok", "a b"]}}', "ask"))
    assert.same({ 7, 53 }, { place.line, place.column })
    assert.is_truthy(err:find("c.toml line 7 column 53: permissions.rules[1]", 1, true))
  end)
end)
