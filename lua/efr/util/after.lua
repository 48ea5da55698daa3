-- Owns: a call after a while, once, that can be taken back.
-- Must not know: tasks (efr.util.async takes this as its timer), the daemon, the terminal.
-- Runs in every Lua state of efr that has a loop; luv comes as an argument.

---@param uv table  luv
---@return fun(ms: integer, fn: fun()): fun() after  calls fn once on the loop, ms milliseconds
---  later; what it returns takes that back, and does nothing when it came or was taken back
return function(uv)
  return function(ms, fn)
    local timer = assert(uv.new_timer())
    local function stop()
      if timer then
        timer:close()
        timer = nil
      end
    end
    timer:start(ms, 0, function()
      if timer then
        stop()
        fn()
      end
    end)
    return stop
  end
end
