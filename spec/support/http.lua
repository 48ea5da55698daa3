-- Owns: a fake of the http port for specs: each request is kept, a spec answers it by hand or
-- through `script`. Nothing here waits.

local M = {}

---A fake. `script(request, n, out)` may answer at once through out.head, out.data, out.done.
function M.new()
  local http = { requests = {}, cancelled = 0 }
  function http.request(request, handlers)
    local n = #http.requests + 1
    http.requests[n] = request
    local over = false
    local out = {}
    function out.head(status, headers)
      if not over then handlers.on_head(status, headers or "") end
    end
    function out.data(bytes)
      if not over then handlers.on_data(bytes) end
    end
    function out.done(err, code)
      if over then return end
      over = true
      handlers.on_done(err, code)
    end
    http.last = out
    if http.script then http.script(request, n, out) end
    return {
      cancel = function()
        over = true
        http.cancelled = http.cancelled + 1
      end,
    }
  end
  return http
end

---The text of a stream of chunks with its [DONE].
function M.stream(chunks)
  local out = {}
  for _, chunk in ipairs(chunks) do out[#out + 1] = "data: " .. chunk .. "\n\n" end
  out[#out + 1] = "data: [DONE]\n\n"
  return table.concat(out)
end

return M
