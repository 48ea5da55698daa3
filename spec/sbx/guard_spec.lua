-- The surface guard on real trees with real git: every rule from its table of examples, what
-- ordinary git does, quarantine and the way back, hostile names, and how its cost grows. What runs
-- in between is no contained call (that is tests/e2e/guard.sh), so that each rule can be shown also
-- where a call could not write. Needs efr's own Lua state (C modules) and the launcher.
if not package.preload["efr.fs"] then return end

local compare = require "efr.sbx.guard.compare"
local git_world = require "spec.support.git_world"
local guard_of = require "efr.sbx.guard"
local list = require "efr.util.list"
local look = require "efr.sbx.guard.look"
local plants = require "spec.sbx.guard_plants"
local rules = require "efr.sbx.guard.rules"
local scan = require "efr.sbx.guard.scan"

describe("sbx.guard", function()
  local ports = git_world.ports
  local defaults = {}
  for _, key in ipairs(require("efr.config.sections.sandbox").keys) do
    defaults["sandbox." .. key.name] = key.default
  end
  local max_entries, settled_ns = scan.MAX_ENTRIES, look.SETTLED_NS
  local base, project, guard, errors, calls, template

  local function shell(line, dir)
    local quoted = line:gsub("'", "'\\''")
    assert(os.execute(("cd '%s' && { HOME='%s/home' GIT_CONFIG_NOSYSTEM=1 sh -ec '%s'; } >/dev/null 2>&1")
      :format(dir or project, base, quoted)), "failed: " .. line)
  end

  local wait = git_world.wait

  local function mounts(more)
    local out = { { kind = "root", path = project } }
    return table.move(more or {}, 1, #(more or {}), 2, out)
  end

  local function before(more, cwd)
    calls = calls + 1
    return wait(guard.before, guard, {
      conversation_id = "c1", call_id = "k" .. calls, mounts = mounts(more), cwd = cwd or project,
    })
  end

  local function after(watch, cwd) return wait(watch.after, watch, cwd) end

  -- A call that does what the line says.
  local function call(line, more)
    local watch = before(more)
    shell(line)
    return after(watch), watch
  end

  local function summary(report)
    local out = {}
    for i, change in ipairs(report.changes) do
      out[i] = { path = change.path:sub(#project + 2), rule = change.rule, key = change.key,
        quarantined = change.quarantined, restored = change.restored, error = change.error }
    end
    return out
  end

  -- A file or link of the project; nil for nothing else.
  local function what_stands(path)
    path = project .. "/" .. path
    local stat = ports.fs.lstat(path)
    if not stat or stat.type ~= "file" and stat.type ~= "link" then return nil end
    local read = stat.type == "file" and ports.fs.read_file or ports.fs.readlink
    return { type = stat.type, mode = stat.mode, bytes = read(path) }
  end

  local function exists(path) return ports.fs.lstat(project .. "/" .. path) ~= nil end

  setup(git_world.timers)

  teardown(function() if template then assert(ports.fs.rmtree(template)) end end)

  before_each(function()
    base = git_world.base("guard-spec",
      { "project", "home", "config", "data", "state", "runtime" })
    project, calls, errors = base .. "/project", 0, {}
    if template then
      assert(os.execute(("cp -a '%s/.git' '%s/.git'"):format(template, project)))
    else
      shell("git init -q -b main . && git -c user.name=a -c user.email=a@b commit -qm one "
        .. "--allow-empty")
      template = base .. ".template"
      assert(os.execute(("cp -a '%s' '%s'"):format(project, template)))
    end
    local app = git_world.app(base, defaults)
    app.log = { error = function(_, fmt, ...) errors[#errors + 1] = fmt:format(...) end }
    app.git = require("efr.sbx.git").new(app)
    guard = guard_of.new(app)
  end)

  after_each(function()
    scan.MAX_ENTRIES, look.SETTLED_NS = max_entries, settled_ns
    os.execute(("chmod -R u+rwX '%s'"):format(base))
    assert(ports.fs.rmtree(base))
  end)

  -- Rules -----------------------------------------------------------------------------------------

  for _, rule in ipairs(rules) do
    for i, plant in ipairs(plants[rule.name] or {}) do
      it(("%s, %d: %s"):format(rule.name, i, plant.line), function()
        scan.MAX_ENTRIES = plant.max_entries or scan.MAX_ENTRIES
        if plant.before then shell(plant.before) end
        local stood = {}
        for n, path in ipairs(plant.paths) do stood[n] = what_stands(path) end
        local report = call(plant.line)
        local wanted = {}
        for n, path in ipairs(plant.paths) do
          wanted[n] = { path = path, rule = rule.name, key = plant.key,
            quarantined = rule.quarantine and not plant.removed or nil,
            restored = rule.quarantine and stood[n] and true or nil }
        end
        assert.same(wanted, summary(report))
        assert.same({}, errors)
        for n, path in ipairs(plant.paths) do
          if rule.quarantine then assert.same(stood[n], what_stands(path)) end
        end
        assert.equal(rule.quarantine and not plant.removed, report.place ~= nil)
        -- The next call has nothing to do with it.
        assert.same({}, summary(call(":")))
      end)
    end

    it(rule.name .. " has an example", function() assert.is_table((plants[rule.name] or {})[1]) end)
  end

  it("knows each example's rule", function()
    local names = {}
    for _, rule in ipairs(rules) do names[rule.name] = true end
    for _, name in ipairs(list.keys(plants)) do assert.is_true(names[name], name) end
  end)

  -- Ordinary work ---------------------------------------------------------------------------------

  for _, line in ipairs {
    "echo x >f; git add f; git -c user.name=a -c user.email=a@b commit -qm two",
    "git branch b; git checkout -q b; git stash list; git gc -q",
    "git init -q sub; git -C sub config user.name a; git -C sub remote add origin /tmp/x",
    "git clone -q . copy",
    "git init -q --bare store.git",
    "git worktree add -q ../tree",
    "git clone -q --bare . b.git; git -C b.git worktree add -q ../b-tree; git -C b-tree status",
    "git worktree add -q tree; git -C tree status; git worktree list",
    "git worktree move ../tree-a tree-b; git -C tree-b status; git worktree repair tree-b",
    "git worktree move tree-c tree-d; git -C tree-d status",
    "git worktree remove tree-c",
    "git worktree remove tree-c; git worktree add -q tree-c; git branch -D tree-a || :",
    "rm -rf tree-c; git worktree prune",
    "cp -a tree-c tree-e; mv tree-c tree-f",
    "mv nested two; cp -a nested2 three",
    "git init -q ../other && cd ../other && git -c user.name=a -c user.email=a@b commit -qm x "
      .. "--allow-empty; cd ../project; "
      .. "git -c protocol.file.allow=always submodule add -q ../other mod",
    "mkdir -p a/b; echo x >a/b/c; rm -rf a",
    "rm -rf .git/hooks",
  } do
    it("says nothing of: " .. line, function()
      if line:find("tree-", 1, true) then
        shell("git worktree add -q ../tree-a; git worktree add -q tree-c")
      elseif line:find("nested", 1, true) then
        shell("mkdir nested nested2; echo 'gitdir: /tmp/out' | tee nested/.git >nested2/.git")
      end
      assert.same({}, summary(call(line)))
    end)
  end

  it("leaves what stood there before the call", function()
    shell("git init -q sub; git -C sub config core.fsmonitor mine; echo mine >sub/.git/hooks/pre-push; "
      .. "echo /tmp >sub/.git/commondir; mkdir .vscode; : >.git/config.worktree; mv sub s2; mv s2 sub")
    assert.same({}, summary(call("echo x >file; echo y >sub/f")))
    assert.same({}, summary(call("git -C sub config user.name me; touch sub/.git/hooks/pre-push")))
    assert.same({}, summary(call("mkdir d; mv sub d/sub")))
  end)

  it("takes what was read-only in the call for somebody else's", function()
    local floors = { { kind = "pin", path = project .. "/.git" },
      { kind = "floor", path = project .. "/.git/config" },
      { kind = "floor", path = project .. "/.git/hooks" } }
    assert.same({}, summary(call("git config core.editor mine; echo mine >.git/hooks/pre-push",
      floors)))
    assert.same({ { path = ".git/commondir", rule = "commondir_in_main_git_dir", quarantined = true } },
      summary(call("echo x >.git/commondir", floors)))
  end)

  it("looks at the repository of the directory in which a call ends, however deep", function()
    local deep = project .. "/a/b/c/d/e/f"
    shell("mkdir -p a/b/c/d/e; git init -q a/b/c/d/e/f; echo mine >a/b/c/d/e/f/.git/hooks/pre-push")
    local function ctime(name)
      local dir <close> = assert(ports.dir.open(deep .. "/.git/hooks"))
      return dir:stat(name).ctime_ns
    end
    guard.since.c1 = ctime("pre-push") + 1 + compare.SLACK_NS
    local watch = before()
    -- Until the kernel's clock of files has ticked.
    repeat shell("echo evil >a/b/c/d/e/f/.git/hooks/pre-commit") until
      ctime("pre-commit") > ctime("pre-push")
    local report = after(watch, deep)
    assert.same({ { path = "a/b/c/d/e/f/.git/hooks/pre-commit", rule = "hook_planted",
      quarantined = true } }, summary(report))
  end)

  -- Quarantine ------------------------------------------------------------------------------------

  it("moves to quarantine, lists what lies there, and puts all back as it was", function()
    shell("git init -q sub")
    local watch = before()
    shell("git -C sub config core.pager evil; chmod 640 sub/.git/config; "
      .. "ln -s /etc/passwd sub/.git/hooks/pre-push; echo evil >sub/.git/hooks/pre-commit; "
      .. "chmod 751 sub/.git/hooks/pre-commit; mkdir sub/.git/commondir; : >sub/.git/commondir/x")
    local names = { "config", "hooks/pre-push", "hooks/pre-commit", "commondir", "commondir/x" }
    local was = {}
    for i, name in ipairs(names) do
      was[i] = assert(ports.uv.fs_lstat(project .. "/sub/.git/" .. name))
      was[i].ctime, was[i].atime = nil, nil
    end
    local report = after(watch)
    local place = report.place
    assert.equal(base .. "/state/sandbox/c1/quarantine/k1", place.dir)
    assert.equal(448, ports.fs.stat(place.dir).mode)
    local listed = ports.json.decode(ports.fs.read_file(place.dir .. "/entries.json"))
    assert.equal(4, #listed)
    for i, entry in ipairs(listed) do
      assert.equal(place.entries[i].from, entry.from)
      assert.truthy(ports.fs.lstat(place.dir .. "/" .. entry.to))
      assert.truthy(entry.to:find("^" .. i .. "%-"))
      assert.equal(place.entries[i].old ~= nil, ports.fs.lstat(entry.from) ~= nil)
    end
    assert.same({}, guard:restore(place))
    for i, name in ipairs(names) do
      local now = assert(ports.uv.fs_lstat(project .. "/sub/.git/" .. name))
      now.ctime, now.atime = nil, nil
      assert.same(was[i], now)
    end
    assert.is_falsy(ports.fs.lstat(place.dir))
    assert.same({}, summary(call(":")))
  end)

  it("lets what it put back make room for what is kept", function()
    shell("git init -q sub; echo fine >sub/.git/hooks/pre-push; chmod 751 sub/.git/hooks/pre-push")
    local report = call("echo evil >sub/.git/hooks/pre-push; git -C sub config core.pager evil")
    assert.equal("fine\n", ports.fs.read_file(project .. "/sub/.git/hooks/pre-push"))
    assert.same({}, guard:restore(report.place))
    assert.equal("evil\n", ports.fs.read_file(project .. "/sub/.git/hooks/pre-push"))
    shell("git -C sub config core.pager | grep evil")
    assert.is_falsy(ports.fs.lstat(report.place.dir))
  end)

  it("does not let what somebody changed meanwhile make room", function()
    shell("git init -q sub; echo fine >sub/.git/hooks/pre-push")
    local report = call("echo evil >sub/.git/hooks/pre-push")
    shell("echo more >>sub/.git/hooks/pre-push")
    assert.equal(1, #guard:restore(report.place))
    assert.equal("fine\nmore\n", ports.fs.read_file(project .. "/sub/.git/hooks/pre-push"))
  end)

  it("puts nothing back over another file or into another directory", function()
    shell("git init -q sub; git init -q two")
    local report = call("echo a >sub/.git/hooks/pre-push; echo b >two/.git/hooks/pre-push; "
      .. "echo c >.git/commondir")
    shell("echo other >sub/.git/hooks/pre-push; mv two/.git/hooks two/.git/h2; mkdir two/.git/hooks")
    local failed = guard:restore(report.place)
    assert.equal(2, #failed)
    assert.equal(project .. "/sub/.git/hooks/pre-push", failed[1].path)
    assert.truthy(failed[1].reason:find("File exists", 1, true))
    assert.truthy(failed[2].reason:find("another directory", 1, true))
    assert.equal("other\n", ports.fs.read_file(project .. "/sub/.git/hooks/pre-push"))
    assert.is_falsy(exists("two/.git/hooks/pre-push"))
    assert.truthy(exists(".git/commondir"))
    assert.equal(2, #report.place.entries)
    for _, entry in ipairs(report.place.entries) do
      assert.truthy(ports.fs.lstat(report.place.dir .. "/" .. entry.to))
    end
    assert.equal(2, #ports.json.decode(ports.fs.read_file(report.place.dir .. "/entries.json")))
  end)

  it("takes names of any bytes and any length", function()
    local names = { "a\nb", "\255\254", ("x"):rep(255), ("é"):rep(127), "-rf", " ", "a'b\"c$(d)" }
    shell("git init -q sub")
    local watch = before()
    for i, name in ipairs(names) do
      assert(ports.fs.write_atomic(project .. "/sub/.git/hooks/" .. name:sub(1, 200) .. "h", "evil " .. i))
      assert(ports.fs.rename(project .. "/sub/.git/hooks/" .. name:sub(1, 200) .. "h",
        project .. "/sub/.git/hooks/" .. name))
    end
    local report = after(watch)
    assert.equal(#names, #report.changes)
    for _, change in ipairs(report.changes) do assert.is_true(change.quarantined, change.path) end
    local listed = ports.json.decode(ports.fs.read_file(report.place.dir .. "/entries.json"))
    require("efr.util.exact").restore(listed)
    for i, entry in ipairs(listed) do
      assert.equal(report.place.entries[i].from, entry.from)
      assert.equal(report.place.entries[i].to, entry.to)
    end
    assert.same({}, guard:restore(report.place))
    for i, name in ipairs(names) do
      assert.equal("evil " .. i, ports.fs.read_file(project .. "/sub/.git/hooks/" .. name))
    end
  end)

  it("says what it could not move, and goes on", function()
    if ports.sys.getuid() == 0 then return end -- rights do not bind root
    shell("git init -q sub; git init -q two")
    local report = call("echo a >sub/.git/hooks/pre-push; chmod a-w sub/.git/hooks; "
      .. "echo b >two/.git/hooks/pre-push")
    assert.same({ "EACCES", true }, {
      report.changes[1].error:find("Permission denied", 1, true) and "EACCES",
      report.changes[2].quarantined,
    })
    assert.is_nil(report.changes[1].quarantined)
    assert.equal(2, #errors) -- once a round; the second one found nothing more
    shell("chmod u+w sub/.git/hooks")
  end)

  -- Plants again whenever something was moved out of a hooks directory, so often.
  local function replanting(times)
    local real = ports.dir.open
    guard.app.ports.dir = { open = function(path)
      local dir, err, code = real(path)
      if not dir or not path:find("/hooks$") then return dir, err, code end
      local proxy = setmetatable({}, {
        __index = function(_, name)
          return function(_, ...)
            local found = table.pack(dir[name](dir, ...))
            if name == "move" and times > 0 then
              times = times - 1
              assert(ports.fs.write_atomic(path .. "/pre-commit", "again " .. times))
            end
            return table.unpack(found, 1, found.n)
          end
        end,
        __close = function() dir:close() end,
      })
      return proxy
    end }
  end

  it("looks again after it moved something", function()
    shell("git init -q sub")
    replanting(2)
    local report = call("echo evil >sub/.git/hooks/pre-commit")
    assert.same({ { path = "sub/.git/hooks/pre-commit", rule = "hook_planted", quarantined = true } },
      summary(report))
    assert.is_false(exists("sub/.git/hooks/pre-commit"))
    assert.equal(3, #report.place.entries)
    guard.app.ports.dir = ports.dir
    -- The newest goes back; the older ones find its place taken.
    assert.equal(2, #guard:restore(report.place))
    assert.equal("again 0", ports.fs.read_file(project .. "/sub/.git/hooks/pre-commit"))
  end)

  it("says that something comes back as often as it is moved", function()
    shell("git init -q sub")
    replanting(1000)
    local report = call("echo evil >sub/.git/hooks/pre-commit")
    assert.same({ { path = "sub/.git/hooks/pre-commit", rule = "hook_planted",
      error = "it comes back as often as it is moved" } }, summary(report))
    assert.equal(guard_of.ROUNDS, #report.place.entries)
  end)

  -- Files that run code later ---------------------------------------------------------------------

  it("names the files that run code later and were changed", function()
    local package = '{"name": "x", "scripts": {"test": "a"}, "n": 1}'
    shell("echo a >Makefile; mkdir -p lib/.vscode sub/.cargo; echo 1 >keep.mk; : >gone.mk")
    assert(ports.fs.write_atomic(project .. "/package.json", package))
    assert(ports.fs.write_atomic(project .. "/lib/package.json", package))
    local one = call("echo b >Makefile; : >back.mk; touch keep.mk; rm gone.mk; : >lib/.vscode/tasks.json; "
      .. ": >lib/tasks.json; sed -i s/1/2/ package.json; sed -i s/a\\\"/b\\\"/ lib/package.json; "
      .. "printf '[build]\\nrustc-wrapper = \"x\"\\n[target.y]\\nrunner = \"z\"\\n' >sub/.cargo/config.toml; "
      .. "mkdir -p a/b/c/d; : >a/b/c/build.rs; : >a/b/c/d/build.rs; mkdir -p target; : >target/Makefile")
    assert.same({}, summary(one))
    call("rm back.mk; : >gone.mk")
    local found = {}
    for i, file in ipairs(guard:report(one.touched)) do
      found[i] = file.path:sub(#project + 2) .. (file.detail and " (" .. file.detail .. ")" or "")
    end
    assert.same({
      "Makefile", "a/b/c/build.rs", "lib/.vscode/tasks.json", "lib/package.json (scripts)",
      "package.json", "sub/.cargo/config.toml (build.rustc-wrapper, target.y.runner)",
    }, found)
  end)

  it("keeps a file's first state over the calls of a turn", function()
    shell("echo a >Makefile")
    local touched = call("echo b >Makefile").touched
    assert.equal("a\n", touched[project .. "/Makefile"].bytes)
    assert.equal(1, #guard:report(touched))
    shell("echo a >Makefile")
    assert.equal(0, #guard:report(touched))
  end)

  -- Cost ------------------------------------------------------------------------------------------

  it("grows with the entries of a project, and no more than by its limits", function()
    local count, by_name = 0, {}
    local real = ports.dir.open
    local function counting(dir)
      return setmetatable({}, {
        __index = function(_, name)
          return function(_, ...)
            count, by_name[name] = count + 1, (by_name[name] or 0) + 1
            if name == "open" then
              local sub, err, code = dir:open(...)
              return sub and counting(sub), err, code
            end
            return dir[name](dir, ...)
          end
        end,
        __close = function() dir:close() end,
      })
    end
    guard.app.ports.dir = { open = function(path)
      count = count + 1
      local dir, err, code = real(path)
      return dir and counting(dir), err, code
    end }
    local function cost(dirs)
      shell(("mkdir t%d; cd t%d; seq %d | xargs mkdir; for i in *; do : >$i/Makefile; done"):format(
        dirs, dirs, dirs))
      guard:rest()
      count = 0
      before()
      return count
    end
    local first = cost(50)
    local second = cost(100) -- with the first ones: three times as many
    local third = cost(150) -- six times
    assert.is_true(second - first > 0)
    assert.is_true(math.abs((third - second) / (second - first) - 1.5) < 0.2,
      ("%d, %d, %d"):format(first, second, third))
    -- What did not change is not read again: of 300 directories and files only the stamps are
    -- looked at.
    look.SETTLED_NS = -1
    before()
    by_name = {}
    before()
    assert.is_true(by_name.list < 10, tostring(by_name.list))
    assert.is_nil(by_name.read)
    assert.is_true(by_name.stat > 600)
  end)
end)
