-- Owns: `efr rules test` as seen from outside the rules process: one example after the other, each
-- with a time limit of its own.
-- Must not know: what an example is (rules/suite), files, terminals.
-- Runs in efr, on the loop thread; waits in a task.
--
-- Policy: an example without an end costs its time and its process, and the next one runs in a new
-- process. After three of them the rules are off (rules/client), and no other one runs.

local bytes = require "efr.rules.bytes"

local M = {}

M.EXAMPLE_MS = 1000 ---@type integer

local LOAD_MS <const> = 2000

-- Has the process collect the examples of some files.
local function collect(running, files)
  local packed = bytes.pack({ op = "examples", files = files }, math.maxinteger)
  local reply, problem = running:request(packed, LOAD_MS)
  if not reply then return nil, problem end
  if reply.failure then return nil, reply.failure end
  if type(reply.examples) ~= "table" then return nil, { message = "no list of examples" } end
  return reply
end

-- The process that runs the next example: after one that took too long it is a new one.
local function process_for(client, running, files)
  if running and not running.ended then return running end
  running = client:running(LOAD_MS)
  return running and collect(running, files) and running or nil
end

local function run_example(running, at, example)
  local reply, problem = running:request({ op = "example", at = at }, M.EXAMPLE_MS)
  if not problem then problem = reply.failure end
  local result = reply and reply.result
  if type(result) ~= "table" then
    problem = problem or { message = "an answer without a result" }
    result = { ok = false, message = problem.message, file = problem.file, line = problem.line }
  end
  result.name = tostring(example.name)
  result.file, result.line = result.file or example.file, result.line or example.line
  return result, reply and reply.printed
end

---Runs the examples of some files.
---@param client table  rules/client with a running process
---@param files efr.rules.Source[]
---@return {results: table[], printed: string[]}?
---@return efr.rules.Problem?
function M.run(client, files)
  local running = client:running(LOAD_MS)
  if not running then return nil, { message = "the rules process has ended" } end
  local list, problem = collect(running, files)
  if not list then return nil, problem end
  local out = { results = {}, printed = table.move(list.printed, 1, #list.printed, 1, {}) }
  for at, example in ipairs(list.examples) do
    running = process_for(client, running, files)
    local result, printed
    if running then
      result, printed = run_example(running, at, example)
    else
      result = { ok = false, name = tostring(example.name), file = example.file,
        line = example.line, message = "it did not run: too many examples had no end" }
    end
    out.results[at] = result
    table.move(printed or {}, 1, #(printed or {}), #out.printed + 1, out.printed)
  end
  return out
end

return M
