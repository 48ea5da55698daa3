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

---The real module, or nil under plain lua5.4.
function M.native(name)
  return package.preload[name] and require(name) or nil
end

return M
