-- Owns: reading standard input to its end, for what is given in a pipe or a file.
-- Must not know: what is read. Runs in `efr`; waits for the writer.

local M = {}

--- All of standard input, one piece beyond the limit at most.
--- @param env table
--- @param limit integer  bytes; a longer result is too long
--- @return string? bytes
--- @return string? message
--- @return string? code
function M.read_all(env, limit)
  local parts, size = {}, 0
  while size <= limit do
    local bytes, err, code = env.ports.tty.read(0)
    if not bytes then
      return nil, err, code
    end
    if bytes == "" then
      break
    end
    parts[#parts + 1], size = bytes, size + #bytes
  end
  return table.concat(parts)
end

return M
