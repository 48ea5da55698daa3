-- A context for tool specs: a text port of plain Lua and, when the C modules are there, the real
-- efr.fs and efr.text.
local M = {}

M.text = {
  is_utf8 = function(s) return utf8.len(s) ~= nil end,
  clean = function(s)
    local out, from = {}, 1
    while true do
      local _, bad = utf8.len(s, from)
      if not bad then break end
      out[#out + 1] = s:sub(from, bad - 1) .. "\u{FFFD}"
      from = bad + 1
      if from > #s then return table.concat(out) end
    end
    return table.concat(out) .. s:sub(from)
  end,
}

function M.context(changes)
  local ctx = { cwd = "/w", home = "/h", mode = "cautious", launch = "direct", text = M.text }
  for key, value in pairs(changes or {}) do ctx[key] = value end
  return ctx
end

---A directory of its own on the real disk, with a context that works in it.
---@return table files  dir, ctx; put(name, bytes), get(name), call(tool, input), remove()
function M.files()
  local fs, text = require "efr.fs", require "efr.text"
  local base = (os.getenv("TMPDIR") or "/tmp") .. "/efr-spec-"
  local self = {}
  repeat
    self.dir = base .. math.random(1 << 40)
  until fs.mkdir(self.dir, 448)
  self.ctx = M.context { cwd = self.dir, home = self.dir .. "/home", fs = fs, text = text }

  function self.put(name, bytes)
    assert(fs.write_atomic(self.dir .. "/" .. name, bytes, 420))
    return self.dir .. "/" .. name
  end

  function self.get(name)
    return (fs.read_file(self.dir .. "/" .. name, 1 << 25))
  end

  ---Declares and runs a call, as a turn does when the call is allowed.
  function self.call(tool, input, between)
    self.ctx.target = nil
    local requirements, err = tool.declare(input, self.ctx)
    if not requirements then return { output = err, is_error = true } end
    if between then between(requirements) end
    return tool.run(input, self.ctx)
  end

  function self.remove()
    assert(fs.rmtree(self.dir))
  end

  return self
end

return M
