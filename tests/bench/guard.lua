-- The surface guard before and after a call that does nothing, beside `git status` on the same
-- tree: the first look, and that of every later call, at 100 to 10000 files in 20 to 2000
-- directories.
-- Usage: efr-lua tests/bench/guard.lua
package.path = (os.getenv("EFR_SOURCE") or ".") .. "/?.lua;" .. package.path
dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/helper.lua")
local git_world = require "spec.support.git_world"
local git = require "efr.sbx.git"
local guard_of = require "efr.sbx.guard"
local uv = require "luv"

local ROUNDS <const> = 15
local SIZES <const> = { 100, 1000, 10000 }

local function ms(fn)
  local start = uv.hrtime()
  fn()
  return (uv.hrtime() - start) / 1e6
end

local function median(fn)
  local list = {}
  for i = 1, ROUNDS do list[i] = ms(fn) end
  table.sort(list)
  return list[(ROUNDS + 1) // 2]
end

local function shell(line, ...) assert(os.execute(line:format(...))) end

local function new_guard(base)
  local defaults = {}
  for _, key in ipairs(require("efr.config.sections.sandbox").keys) do
    defaults["sandbox." .. key.name] = key.default
  end
  local app = git_world.app(base, defaults)
  app.log = { error = function(_, ...) error(string.format(...)) end }
  app.git = git.new(app)
  return guard_of.new(app)
end

git_world.timers()
print("guard (median of " .. ROUNDS .. ")")
for _, size in ipairs(SIZES) do
  local base = git_world.base("guard-bench",
    { "project", "home", "config", "data", "state", "runtime" })
  local project = base .. "/project"
  shell("cd '%s' && git init -q . && seq -f 'd%%04.0f' %d | xargs mkdir && for d in d*; do "
    .. "(cd $d && : >a && : >b && : >c && : >d && : >e); done && git add -A && "
    .. "git -c user.name=a -c user.email=a@b commit -qm one", project, size // 5)
  local guard, calls = new_guard(base), 0
  local function call()
    calls = calls + 1
    local watch = git_world.wait(guard.before, guard, {
      conversation_id = "c1", call_id = "k" .. calls, cwd = project,
      mounts = { { kind = "root", path = project } },
    })
    git_world.wait(watch.after, watch, project)
  end
  local first = ms(call)
  local later = median(call)
  local status = median(function() shell("git -C '%s' status --porcelain", project) end)
  print(("%6d files: first %7.1f ms, later calls %6.1f ms, git status %6.1f ms  %5.2f x"):format(
    size, first, later, status, later / status))
  assert(guard.app.ports.fs.rmtree(base))
end
