-- efr.util.async: order, errors, time, queues, cancellation; with a clock that moves by hand.
local helper = require("spec.helper")

describe("util.async", function()
  local async, clock

  before_each(function()
    async, clock = helper.async()
  end)

  local function count_up(list)
    return function(value)
      list[#list + 1] = value
    end
  end

  describe("spawn and await", function()
    it("runs until the first wait at once and goes on with the values of resume", function()
      local seen, resume = {}, nil
      local task = async.spawn(function(a, b)
        seen[1] = a + b
        local x, y, z = async.await(function(wake)
          resume = wake
        end)
        seen[2] = { x, y, z }
        return "end", nil, 3
      end, 1, 2)
      assert.are.same({ 3 }, seen)
      assert.is_false(task.done)
      resume("x", nil, "z")
      assert.are.same({ "x", nil, "z" }, seen[2])
      assert.is_true(task.done)
      assert.are.same({ n = 3, "end", nil, 3 }, task.values)
    end)

    it("takes a resume that is called at once and ignores later ones", function()
      local later
      local task = async.spawn(function()
        return async.await(function(wake)
          later = wake
          wake(1)
          wake(2)
        end)
      end)
      later(3)
      assert.are.same({ n = 1, 1 }, task.values)
    end)

    it("ignores a second resume after the wait too", function()
      local wakes, seen = {}, {}
      async.spawn(function()
        for i = 1, 2 do
          seen[i] = async.await(function(wake)
            wakes[i] = wake
          end)
        end
      end)
      wakes[1]("first")
      wakes[1]("again")
      assert.are.same({ "first" }, seen)
      wakes[2]("second")
      assert.are.same({ "first", "second" }, seen)
    end)

    it("refuses to wait outside of a task", function()
      -- busted itself may run in a coroutine, so ask from a main thread of Lua
      local ok, err = pcall(function()
        local _, is_main = coroutine.running()
        if is_main then
          async.sleep(1)
        else
          error("await outside of a task")
        end
      end)
      assert.is_false(ok)
      assert.matches("outside of a task", err)
    end)

    it("does not nest tasks that wake each other", function()
      local n <const> = 2000
      local futures, order = {}, 0
      for i = 1, n + 1 do
        futures[i] = async.future()
      end
      for i = 1, n do
        async.spawn(function()
          futures[i]:get()
          order = order + 1
          futures[i + 1]:set(true)
        end)
      end
      futures[1]:set(true)
      assert.are.equal(n, order)
      assert.are.same({}, clock.errors)
    end)
  end)

  describe("errors", function()
    it("go to on_error with a traceback when nobody waits", function()
      local function deep()
        error("broken")
      end
      async.spawn(function()
        async.sleep(5)
        deep()
      end)
      clock.advance(5)
      assert.are.equal(1, #clock.errors)
      assert.matches("broken", clock.errors[1])
      assert.matches("deep", clock.errors[1])
    end)

    it("go to the task that waits", function()
      local got
      local task = async.spawn(function()
        async.sleep(1)
        error("lost")
      end)
      async.spawn(function()
        got = { task:wait() }
      end)
      clock.advance(1)
      assert.is_nil(got[1])
      assert.matches("lost", got[2])
      assert.are.equal("EFR_TASK", got[3])
      assert.are.same({}, clock.errors)
    end)

    it("do not stop other tasks", function()
      local went_on = false
      async.spawn(function()
        async.sleep(1)
        error("one")
      end)
      async.spawn(function()
        async.sleep(1)
        went_on = true
      end)
      clock.advance(1)
      assert.is_true(went_on)
    end)

    it("run the close handlers of the task", function()
      local closed = false
      async.spawn(function()
        local guard <close> = setmetatable({}, {
          __close = function()
            closed = true
          end,
        })
        async.sleep(1)
        assert(guard)
        error("x")
      end)
      clock.advance(1)
      assert.is_true(closed)
    end)
  end)

  it("waits for tasks that ended before and after", function()
    local got = {}
    local task = async.spawn(function()
      async.sleep(2)
      return "v"
    end)
    local function ask()
      local ok, value = task:wait()
      got[#got + 1] = { ok, value }
    end
    async.spawn(ask)
    clock.advance(2)
    async.spawn(ask)
    assert.are.same({ { true, "v" }, { true, "v" } }, got)
  end)

  it("a signal wakes the one that waits, and keeps nothing for later", function()
    local news, woken = async.signal(), 0
    news:notify()
    async.spawn(function()
      while true do
        news:wait()
        woken = woken + 1
      end
    end)
    assert.are.equal(0, woken)
    news:notify()
    assert.are.equal(1, woken)
    news:notify()
    assert.are.equal(2, woken)
    assert.has_error(function()
      news:wait()
    end, "a signal has one waiting task")
  end)

  it("future gives its values to all and can be set once", function()
    local future, got = async.future(), {}
    for i = 1, 3 do
      async.spawn(function()
        local a, b = future:get()
        got[i] = { a, b }
      end)
    end
    assert.is_false(future.done)
    assert.is_true(future:set(1, "b"))
    assert.is_false(future:set(2))
    assert.is_true(future.done)
    assert.are.same({ { 1, "b" }, { 1, "b" }, { 1, "b" } }, got)
  end)

  describe("queue", function()
    it("keeps order, respects its limit and wakes in turn", function()
      local queue, got = async.queue(2), {}
      assert.is_true(queue:push(1))
      assert.is_true(queue:push(2))
      assert.is_false(queue:push(3))
      assert.are.equal(2, queue:len())
      async.spawn(function()
        for _ = 1, 4 do
          got[#got + 1] = queue:pop()
        end
      end)
      assert.are.same({ 1, 2 }, got)
      queue:push(4)
      queue:push(5)
      assert.are.same({ 1, 2, 4, 5 }, got)
      assert.are.equal(0, queue:len())
    end)

    it("closes: the rest is read, then nil", function()
      local queue, got = async.queue(), {}
      queue:push("a")
      queue:close()
      assert.is_false(queue:push("b"))
      async.spawn(function()
        got[1] = queue:pop()
        got[2] = queue:pop() == nil
      end)
      assert.are.same({ "a", true }, got)
    end)

    it("wakes who waits when it closes", function()
      local queue, woken = async.queue(), false
      async.spawn(function()
        woken = queue:pop() == nil
      end)
      queue:close()
      assert.is_true(woken)
    end)
  end)

  describe("token", function()
    it("tells its listeners once, in order, and those that come late at once", function()
      local token, seen = async.token(), {}
      local add = count_up(seen)
      token:on_cancel(function(reason)
        add("a:" .. reason)
      end)
      local remove = token:on_cancel(function()
        add("never")
      end)
      token:on_cancel(function()
        add("c")
      end)
      remove()
      remove()
      token:cancel("user")
      token:cancel("again")
      assert.are.same({ "a:user", "c" }, seen)
      assert.is_true(token.cancelled)
      assert.are.equal("user", token.reason)
      token:on_cancel(function(reason)
        add("late:" .. reason)
      end)
      assert.are.equal("late:user", seen[3])
    end)

    it("lets a listener remove another one while it runs", function()
      local token, seen = async.token(), {}
      local remove
      token:on_cancel(function()
        remove()
      end)
      remove = token:on_cancel(function()
        seen[1] = true
      end)
      token:cancel()
      assert.are.same({}, seen)
    end)
  end)

  describe("with_timeout", function()
    local function run(ms, fn)
      local got
      async.spawn(function()
        got = table.pack(async.with_timeout(ms, fn))
      end)
      return function()
        return got
      end
    end

    it("gives the results and leaves no timer", function()
      local got = run(10, function()
        async.sleep(3)
        return "a", nil, "c"
      end)
      clock.advance(3)
      assert.are.same({ n = 4, true, "a", nil, "c" }, got())
      assert.are.equal(0, clock.pending())
    end)

    it("gives the results of what does not wait", function()
      assert.are.same({ n = 2, true, 7 }, run(10, function()
        return 7
      end)())
      assert.are.equal(0, clock.pending())
    end)

    it("reports a timeout and drops what comes later", function()
      local got = run(10, function()
        async.sleep(30)
        return "late"
      end)
      clock.advance(10)
      assert.are.same({ n = 3, nil, "timeout", "EFR_TIMEOUT" }, got())
      clock.advance(30)
      assert.are.equal("timeout", got()[2])
    end)

    it("raises an error at once only in the waiting task", function()
      local message
      async.spawn(function()
        local _, err = pcall(async.with_timeout, 10, function()
          error("early")
        end)
        message = err
      end)
      assert.matches("early", message)
      assert.are.same({}, clock.errors)
    end)

    it("reports an error that comes after the timeout", function()
      run(10, function()
        async.sleep(20)
        error("late")
      end)
      clock.advance(30)
      assert.are.equal(1, #clock.errors)
      assert.matches("late", clock.errors[1])
    end)

    it("raises the error of the function in the waiting task", function()
      run(10, function()
        async.sleep(1)
        error("inner")
      end)
      clock.advance(1)
      assert.are.equal(1, #clock.errors)
      assert.matches("inner", clock.errors[1])
      assert.are.equal(0, clock.pending())
    end)
  end)
end)
