-- Specs of input waits with a real zsh, real programs and a real terminal, without a sandbox: what is
-- seen, what is not, and which answers are typed. The rules alone: waits_rules_spec.lua.
local async = require "efr.util.async"
local shells = require "spec.support.shells"

local function with(fn)
  return function() shells.world({}, fn) end
end

-- Runs a line in a task and notes its waits; opts.answer(wait, world) is called at each.
local function start(world, line, opts)
  opts = opts or {}
  local call = { line_path = world:write("line", line), nonce = ("%032x"):format(math.random(1, 1 << 40)) }
  local noted = { waits = {}, call = call, shell = world:shell() }
  noted.task = async.spawn(function()
    return noted.shell:run {
      call = call, timeout_ms = opts.timeout_ms or 20000, shell_line = opts.shell_line,
      manual_input = opts.manual_input,
      on_wait = function(wait)
        noted.waits[#noted.waits + 1] = wait
        if opts.on_wait then opts.on_wait(wait, noted) end
      end,
    }
  end)
  return noted
end

local function finish(noted)
  local ok, result = noted.task:wait()
  assert(ok, result)
  return result
end

local function kinds(noted)
  local out = {}
  for i, wait in ipairs(noted.waits) do out[i] = wait.kind .. (wait.looks_secret and "!" or "") end
  return table.concat(out, " ")
end

local function answering(text, hidden)
  return function(wait, noted)
    if wait.kind == "none" then return end
    assert.same({ true }, { noted.shell:answer(noted.call, { text = text, hidden = hidden }) })
  end
end

describe("input waits", function()
  it("of a program that reads a line without echo", with(function(world)
    local noted = start(world, [[python3 -c 'import getpass; print("got", getpass.getpass("Key: "))']],
      { on_wait = answering("s3 cret", true) })
    local result = finish(noted)
    assert.equal("Key: \ngot s3 cret\n", result.output)
    assert.equal("hidden none", kinds(noted))
  end))

  it("of a program that asks in a row", with(function(world)
    local noted = start(world, [[sh -c 'printf "Go on? [y/N] "; read a; echo "it is $a"']],
      { on_wait = answering("y", false) })
    assert.equal("Go on? [y/N] y\nit is y\n", finish(noted).output)
    assert.equal("visible none", kinds(noted))
  end))
end)
