-- Runs the programs of spec/data/terminal_programs.lua for real, outside of the sandbox and inside: the
-- text, the exit status and what each waits for are as the table says, and the shell works afterwards.
-- The short size runs the rows of ci, the long one all. Not covered: who is asked (tests/e2e/input.sh).
local async = require "efr.util.async"
local contained = require "spec.support.contained"
local rows = require "spec.data.terminal_programs"
local shells = require "spec.support.shells"

local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"
local SHELLS <const>, LIMIT_MS <const> = 6, 30000
local ports = shells.ports

local function installed(program)
  for _, dir in ipairs { "/usr/bin/", "/bin/", "/usr/sbin/" } do
    if ports.fs.stat(dir .. program) then return true end
  end
  return false
end

local function is_run(row, place, skipped)
  if not (LONG or row.ci) or row.place and row.place ~= place then return false end
  local user = ports.sys.getuid() == 0 and "root" or "other"
  if row.user and row.user ~= user then return false end
  if row.program and not installed(row.program) then
    skipped[#skipped + 1] = row.name
    return false
  end
  return true
end

-- The row as it is in a place.
local function row_in(row, place)
  if place == "outside" or not row.inside then return row end
  return setmetatable(row.inside, { __index = row })
end

-- A call in a directory of its own.
local function make_call(sandbox, row, place, number)
  local dir = ("%s/home/p/%d"):format(sandbox.base, number)
  assert(ports.fs.mkdirs(dir, 448))
  for name, text in pairs(row.files or {}) do sandbox:file(dir .. "/" .. name, text) end
  if place == "contained" then
    return assert(sandbox:prepare { line = row.line, cwd = dir }), dir
  end
  local path = sandbox:file(("line%d"):format(number), row.line)
  return { line_path = path, nonce = ("%032x"):format(number) }, dir
end

local function check(row, place, result, waits)
  if row.secret or row.nobody then
    assert.equal("wants_secret", result.outcome, result.output)
    assert.is_nil(result.left_running)
    return
  end
  assert.equal(row.waits or "", waits, result.output)
  if row.stop then
    assert.equal("interrupted", result.outcome)
  elseif row.stands then
    assert.equal("timeout", result.outcome)
    assert.equal(row.stands, result.waits)
  else
    assert.equal("finished", result.outcome, result.setup_error or result.output)
    assert.equal(row.code or 0, result.exit_code, result.output)
  end
  for _, text in ipairs(type(row.text) == "table" and row.text or { row.text }) do
    assert(result.output:find(text, 1, true), ("%s: no %q in %q"):format(place, text, result.output))
  end
  if row.lacks then assert.is_nil(result.output:find(row.lacks, 1, true)) end
end

-- Ends a program that stands: by its own keys, else by an interrupt. Contained ones get no keys.
local function finish(shell, row, ended)
  if row.quit and not shell._run.call.launcher then
    assert(shell:type_keys(row.quit))
  else
    assert(shell:interrupt_left())
  end
  local in_time = async.with_timeout(LIMIT_MS, function() ended:get() end)
  assert(in_time, "it did not end")
end

local function run_row(shell, sandbox, row, place, number)
  local call, dir = make_call(sandbox, row, place, number)
  if place == "outside" then assert(shell:set_cwd(dir), "no move") end
  local kinds, next_answer, token, ended = {}, 1, async.token(), async.future()
  local options = {
    call = call, line = row.line, launch = place == "contained" and "contained" or "direct",
    timeout_ms = LIMIT_MS, token = token, on_late_end = function() ended:set() end,
    shell_line = require("efr.perm.starts_shell").line(row.line),
    on_wait = function(wait)
      kinds[#kinds + 1] = wait.kind .. (wait.looks_secret and "!" or "")
      if row.nobody then return shell:refuse_input(call) end
      if row.stop then return token:cancel("test") end
      if wait.kind == "none" or row.secret then return end
      local text = (row.answers or {})[next_answer]
      if not text then return token:cancel("one wait too many") end
      local ok, why = shell:answer(call, { text = text, hidden = wait.kind == "hidden" })
      assert(ok, why)
      next_answer = next_answer + 1
    end,
  }
  if row.stands then
    -- The caller's time ends when the program stands.
    options.timeout_ms, options.may_wait = 0, function()
      local run = shell._run
      shell:_wait(ports.sys.mono_us() // 1000 + LIMIT_MS, nil, function()
        return run.wait ~= nil or run.ended
      end)
      return false
    end
  end
  local result = shell:run(options)
  if row.stop and result.outcome == "interrupted" and not row.waits:find("none") then
    kinds = { kinds[1] }
  end
  check(row, place, result, table.concat(kinds, " "))
  if result.left_running then finish(shell, row, ended) end
  assert.equal("fine\n", shell:run({ line = "echo fine", timeout_ms = LIMIT_MS }).output)
end

local function run_all(place)
  local jobs, skipped = {}, {}
  for _, row in ipairs(rows) do
    if is_run(row, place, skipped) then jobs[#jobs + 1] = row_in(row, place) end
  end
  assert(#jobs >= (LONG and 50 or 18), "too few programs are installed")
  local sandbox, failed, count = contained.new(), {}, #jobs
  local fine, why = pcall(shells.world, {}, function(world)
    local tasks, number = {}, 0
    for i = 1, SHELLS do
      tasks[i] = async.spawn(function()
        while #jobs > 0 do
          local row = table.remove(jobs, 1)
          number = number + 1
          -- The row's own failure does not end the others.
          local ok, err = async.spawn(run_row, world:shell("c" .. i), sandbox, row, place, number):wait()
          if not ok then
            failed[#failed + 1] = row.name .. ": " .. tostring(err)
            world.pool:close_conversation("c" .. i)
          end
        end
      end)
    end
    for _, task in ipairs(tasks) do task:wait() end
  end)
  sandbox:close()
  assert(fine, why)
  assert(#failed == 0, ("%d of %d programs %s:\n%s"):format(#failed, count, place, table.concat(failed, "\n")))
  if #skipped > 0 then print(("not installed, left out %s: %s"):format(place, table.concat(skipped, ", "))) end
end

describe("programs at the terminal", function()
  for _, place in ipairs { "outside", "contained" } do
    it("wait as the table says, " .. place, function() run_all(place) end)
  end
end)
