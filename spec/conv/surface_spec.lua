require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer
local PATH <const> = "/home/u/p/.git/commondir"

-- The guard in a turn, with a guard that reports what the spec says.
describe("conv: what a call did to git settings", function()
  local w

  local function plant()
    return {
      changes = { { path = PATH, rule = "commondir_in_main_git_dir", quarantined = true } },
      touched = { ["/home/u/p/Makefile"] = false },
      place = { dir = "/q/k", entries = { { from = PATH, to = "1-commondir" } } },
    }
  end

  -- A turn with so many calls; the first one plants.
  local function start(calls, people)
    w = world_of.new()
    w.people = people
    w.planted = { plant() }
    w.provider.script = function(_, n)
      return n <= calls and answer(nil, { { "shell", { command = "x" .. n } } }) or answer("done")
    end
    w.id = w:send("go", { new_conversation = true }).conversation_id
  end

  local function question() return w:find("surface_question_requested")[1] end

  local function respond(keep, session)
    return w:call("surface_respond", { conversation_id = w.id, keep = keep,
      question_id = question().question_id }, session)
  end

  it("is recorded with the call, told to the model, and asked before the next call", function()
    start(2)
    local seen = w:find("sandbox_surface_changed")[1]
    assert.same({ { path = PATH, rule = "commondir_in_main_git_dir", quarantined = true } },
      seen.changes)
    assert.same({ { from = PATH, to = "/q/k/1-commondir" } }, seen.quarantined)
    local done = w:find("tool_call_completed")[1]
    assert.same(seen.changes, done.sandbox.surface_changes)
    assert.equal(done.call_id, seen.call_id)
    assert.equal(1, #w.lines) -- the second call waits
    assert.equal(1, #w:find("tool_call_started"))
    assert.equal(seen.call_id, question().call_id)
    assert.is_table(respond(true, { origin = "shell" }))
    assert.equal(2, #w.lines)
    assert.same({ { dir = "/q/k", entries = { { from = PATH, to = "1-commondir" } } } },
      w.guard.restored)
    local got = w:find("surface_question_answered")[1]
    assert.same({ true, "shell" }, { got.keep, got.origin })
    assert.matches("surface_question_answered .*turn_surface_report turn_completed$", w:kinds())
    assert.same({ { path = ".git/commondir" }, { path = "Makefile" } },
      w:find("turn_surface_report")[1].files)
  end)

  it("stays in quarantine at no", function()
    start(2)
    assert.is_table(respond(false))
    assert.same({}, w.guard.restored)
    assert.is_nil(w:find("surface_question_answered")[1].keep)
    assert.same({ { path = "Makefile" } }, w:find("turn_surface_report")[1].files)
    local ok, _, code = respond(true)
    assert.same({ nil, "not_found" }, { ok, code })
    assert.same({}, w.guard.restored)
  end)

  it("is asked at the end of a turn without another call", function()
    start(1)
    assert.is_table(question())
    assert.equal(0, #w:find("turn_completed"))
    respond(false)
    assert.equal(1, #w:find("turn_completed"))
    assert.equal(1, #w:find("surface_question_requested"))
  end)

  it("stays in quarantine when nobody can answer, and the turn goes on", function()
    start(2, false)
    assert.equal(2, #w.lines)
    assert.same({}, w.guard.restored)
    local got = w:find("surface_question_answered")[1]
    assert.same({ nil, nil }, { got.keep, got.origin })
    assert.equal(1, #w:find("turn_completed"))
  end)

  it("stays in quarantine when nobody answers in time", function()
    start(2)
    w.clock.advance(300 * 1000 - 1)
    assert.equal(1, #w.lines)
    w.clock.advance(1)
    assert.equal(2, #w.lines)
    assert.is_nil(w:find("surface_question_answered")[1].origin)
    assert.same({}, w.guard.restored)
  end)

  it("stays in quarantine at an interrupt, and the next call does not run", function()
    start(2)
    assert.is_table(w:call("interrupt", { conversation_id = w.id }))
    assert.equal(1, #w.lines)
    assert.same({}, w.guard.restored)
    assert.equal(1, #w:find("surface_question_answered"))
    assert.equal("interrupted", w:find("tool_call_completed")[2].refusal.kind)
    assert.matches("turn_interrupted$", w:kinds())
    -- The next turn does not ask again.
    w.provider.script = function(_, n) return answer("turn " .. n) end
    w:send("more", { conversation_id = w.id })
    assert.equal(1, #w:find("surface_question_requested"))
  end)

  it("says what could not be put back", function()
    start(2)
    w.not_restored = { { path = PATH, reason = "File exists" } }
    respond(true)
    local second = w:find("sandbox_surface_changed")[2]
    assert.same({ { path = PATH, rule = "not_put_back", quarantined = true,
      error = "File exists" } }, second.changes)
    assert.same({ { path = "Makefile" } }, w:find("turn_surface_report")[1].files)
  end)

  it("lets no contained call run without a look before", function()
    w = world_of.new()
    w.refuse_guard = "broken"
    w.provider.script = function(_, n)
      return n == 1 and answer(nil, { { "shell", { command = "x" } } }) or answer("done")
    end
    w:send("go")
    assert.equal(0, #w.lines)
    assert.is_true(w.prepared[1].cleaned)
    assert.matches("check of git settings before it failed",
      w:find("tool_call_completed")[1].output)
  end)

  it("ends a turn when it cannot look after a call", function()
    w = world_of.new()
    w.guard_fails = "broken"
    w.provider.script = function() return answer(nil, { { "shell", { command = "x" } } }) end
    w:send("go")
    assert.equal(1, #w.lines)
    assert.is_true(w.prepared[1].cleaned)
    assert.matches("check of git settings", w:find("turn_failed")[1].error.message)
  end)

  it("looks where the call can write, and again when a command ends after its call", function()
    w = world_of.new()
    w.planted = { { changes = {}, touched = {} }, plant() }
    local late
    w.run_line = function(opts)
      late = opts.on_late_end
      return { outcome = "timeout", output = "so far", left_running = true, pty_id = "p" }
    end
    w.provider.script = function(_, n)
      return n == 1 and answer(nil, { { "shell", { command = "x" } } }) or answer("done")
    end
    local id = w:send("go", { new_conversation = true }).conversation_id
    assert.equal(1, #w:find("turn_completed"))
    assert.equal("/home/u/p", w.guard.newest.cwd)
    assert.equal(0, #w:find("sandbox_surface_changed"))
    assert.same({ "x", "p" }, { w:find("shell_command_left")[1].line,
      w:find("shell_command_left")[1].pty_id })
    assert.equal(0, #w:find("shell_command_ended"))
    late({ exit_code = 3 })
    assert.equal(1, #w:find("sandbox_surface_changed"))
    local ended = w:find("shell_command_ended")[1]
    assert.same({ w:find("shell_command_left")[1].call_id, "p", 3 },
      { ended.call_id, ended.pty_id, ended.exit_code })
    -- It is asked before the next call of the conversation.
    w.run_line = nil
    w.provider.script = function(_, n)
      return n == 3 and answer(nil, { { "shell", { command = "y" } } }) or answer("done")
    end
    w:send("more", { conversation_id = id })
    assert.equal(1, #w:find("surface_question_requested"))
    assert.equal(1, #w.lines)
  end)

  it("counts the files that efr's own tools changed, in auto alone", function()
    for mode, count in pairs({ auto = 1, cautious = 0 }) do
      w = world_of.new({ config = { ["permissions.mode"] = mode } })
      w.provider.script = function(_, n)
        return n == 1 and answer(nil, { { "look", { n = 1, path = "/home/u/p/lib/Makefile" } } })
          or answer("done")
      end
      w:send("go")
      assert.equal(count, #w:find("turn_surface_report"))
    end
  end)

  it("is no question for a phone or for the model's side", function()
    local method = require("efr.daemon.rpc.sandbox_surface_respond")
    assert.equal("approve", method.scope)
    assert.is_true(method.command)
    for _, session in ipairs { { origin = "phone", peer = {} },
      { origin = "shell", peer = { model_side = true } } } do
      assert.equal("forbidden", (select(3, method.handler({}, session, {}))))
    end
  end)
end)
