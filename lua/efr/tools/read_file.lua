-- Owns: the tool read_file.
-- Must not know: who decides whether it runs.
-- Runs in efrd, on the loop thread.

local files = require "efr.tools.lib.files"

local M = {}

M.name = "read_file"
M.description = [[Reads a text file. Use it instead of cat, head or sed.
Relative paths start in the hidden shell's directory. Without offset and limit it gives the whole
file; a long result loses its middle, so read a big file in ranges.]]
M.schema = {
  type = "object",
  properties = {
    path = { type = "string", description = "Absolute, ~/..., $SCRATCH/..., or relative." },
    offset = { type = "integer", minimum = 1, description = "The first line to read, from 1." },
    limit = { type = "integer", minimum = 1, description = "How many lines to read." },
  },
  required = { "path" },
}

-- Models send whole numbers as 3.0 as well.
local function whole(value, name)
  if value == nil then return nil end
  local n = math.type(value) and math.tointeger(value)
  if not n or n < 1 then return nil, name .. " must be a whole number from 1." end
  return n
end

local function range_of(input)
  local offset, err = whole(input.offset, "offset")
  if err then return nil, err end
  local limit
  limit, err = whole(input.limit, "limit")
  if err then return nil, err end
  return { offset = offset, limit = limit }
end

---@param input table
---@param ctx efr.ToolContext
---@return table[]? requirements
---@return string? err
function M.declare(input, ctx)
  local range, err = range_of(input)
  if not range then return nil, err end
  local target
  target, err = files.resolve(input, ctx)
  if not target then return nil, err end
  return files.requirements("read", target)
end

local function count_lines(bytes)
  local _, feeds = bytes:gsub("\n", "")
  if bytes ~= "" and bytes:sub(-1) ~= "\n" then feeds = feeds + 1 end
  return feeds
end

-- The position after the nth line feed at or behind from; the end when there are fewer.
local function skip_lines(bytes, from, n)
  for _ = 1, n do
    local feed = bytes:find("\n", from, true)
    if not feed then return #bytes + 1 end
    from = feed + 1
  end
  return from
end

local function note(part, words)
  local feed = (part == "" or part:sub(-1) == "\n") and "" or "\n"
  return part .. feed .. words
end

local function part_of(bytes, range)
  local total = count_lines(bytes)
  local first = range.offset or 1
  if first > total then
    return ("[the file has %d lines; none from line %d]"):format(total, first)
  end
  local last = range.limit and math.min(first + range.limit - 1, total) or total
  local from = skip_lines(bytes, 1, first - 1)
  local to = last == total and #bytes or skip_lines(bytes, from, last - first + 1) - 1
  return note(bytes:sub(from, to), ("[lines %d to %d of %d]"):format(first, last, total))
end

---@param input table
---@param ctx efr.ToolContext
---@return efr.ToolResult
function M.run(input, ctx)
  local bytes, err = files.read(ctx)
  if not bytes then return { output = err, is_error = true } end
  if files.is_binary(bytes) then
    return { output = ctx.target.shown .. " is not a text file.", is_error = true }
  end
  local range = assert(range_of(input))
  local body
  if range.offset or range.limit then
    body = part_of(bytes, range)
  else
    body = bytes == "" and "[the file is empty]" or bytes
  end
  return { output = files.link_note(ctx.target) .. body, is_error = false }
end

return M
