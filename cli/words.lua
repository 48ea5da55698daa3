-- Words of the command line before argparse sees them. Owns: where our options end and the user's
-- own words begin. Must not know: what any command does. Pure.

local M = {}

--- Ends the options at the first word of the command or prompt, so that what follows may hold words
--- with hyphens.
--- @param args string[]
--- @param with_value table<string, boolean>  options whose value is the next word
--- @return string[] args
function M.end_options(args, with_value)
  local out, i = {}, 1
  while i <= #args do
    local word = args[i]
    if word == "--" or word:sub(1, 1) ~= "-" then
      if word ~= "--" then
        out[#out + 1] = "--"
      end
      return table.move(args, i, #args, #out + 1, out)
    end
    out[#out + 1] = word
    if with_value[word] and args[i + 1] then
      i = i + 1
      out[#out + 1] = args[i]
    end
    i = i + 1
  end
  return out
end

return M
