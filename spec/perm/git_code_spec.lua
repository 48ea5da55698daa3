-- What git would run in a repository, and what it tracks: with real git, as efr runs it, in
-- repositories whose settings come from tables. Needs efr's own Lua state and the launcher; the
-- reading of a listing is checked without them.
local git_code = require "efr.perm.git_code"

describe("perm.git_code.parse", function()
  it("reads scope, file, key and value", function()
    assert.same({
      { scope = "local", file = ".git/config", entry = { key = "core.pager", value = "a\nb" } },
      { scope = "global", file = "/h/.gitconfig", entry = { key = "x.y" } },
    }, git_code.parse("local\0file:.git/config\0core.pager\na\nb\0global\0file:/h/.gitconfig\0x.y\0"))
    assert.same({}, git_code.parse(""))
  end)

  for name, bytes in pairs({
    ["a cut"] = "local\0file:a\0k\nv", ["a field too few"] = "local\0file:a\0",
    ["a field too many"] = "local\0file:a\0k\nv\0x\0", ["an empty key"] = "local\0file:a\0\0",
  }) do
    it("refuses " .. name, function() assert.is_nil(git_code.parse(bytes)) end)
  end
end)

if not package.preload["efr.fs"] then return end

local async = require "efr.util.async"
local git_of = require "efr.sbx.git"
local git_world = require "spec.support.git_world"
local keys = require "efr.perm.data.git_keys"

describe("perm.git_code", function()
  local ports = git_world.ports
  local base, env, machine, budget, shell_env
  local runs, kept_answers = 0, nil

  local function shell(line)
    assert(os.execute(("cd '%s' && export HOME='%s/home' GIT_CONFIG_NOSYSTEM=1 && { %s; } "
      .. ">/dev/null 2>&1"):format(base, base, line)), line)
  end

  local function git(line)
    shell("cd p && git -c user.name=a -c user.email=a@b -c protocol.file.allow=always " .. line)
  end

  local function facts()
    local runner = git_of.new(git_world.app(base, {}, env))
    -- A busy machine is not what is tested.
    local slow = { env = env, kept = kept_answers, within = function()
      local run = runner:within(budget)
      return function(what)
        runs = runs + 1
        return run(what)
      end
    end }
    return git_code.new { fs = ports.fs, git = slow, home = base .. "/home", machine = machine,
      env = shell_env }
  end

  local function ask(method, argument)
    local out
    async.spawn(function() out = table.pack(facts()[method](facts(), argument)) end)
    ports.uv.run()
    return assert(out, "no answer")[1]
  end

  local function code(dir)
    local found = ask("code", { dir or base .. "/p" })
    return found.key and ("%s: %s of %s"):format(found.state, found.key, found.file) or found.state
  end

  local function write(path, text, mode)
    assert(ports.fs.write_atomic(base .. "/" .. path, text, mode or 420))
  end

  setup(git_world.timers)

  before_each(function()
    base = git_world.base("git-code-spec",
      { "p", "home", "config", "data", "state", "runtime", "plain", "r" })
    env = { PATH = "/usr/bin:/bin", HOME = base .. "/home", GIT_CONFIG_NOSYSTEM = "1" }
    machine = { home = base .. "/home", project_roots = { base .. "/r" } }
    budget = 20000
    shell("cd p && git init -q -b main && mkdir d && echo x > d/f && echo x > g && git add .")
    git("commit -qm one")
  end)

  after_each(function() ports.fs.rmtree(base) end)

  it("is clean in a plain repository, below it, and outside of every one", function()
    assert.equal("clean", code())
    assert.equal("clean", code(base .. "/p/d"))
    assert.equal("clean", code(base .. "/plain"))
  end)

  describe("asked again", function()
    -- As if the files of the spec were older than they are.
    before_each(function()
      kept_answers = git_of.new({ ports = ports, env = env, paths = {} }).kept
      kept_answers.ports.now_ns = function() return ports.sys.now_us() * 1000 + 3600 * 1000000000 end
    end)

    after_each(function() kept_answers = nil end)

    local function runs_of(state)
      runs = 0
      assert.equal(state, code())
      return runs
    end

    it("runs git once while nothing changed", function()
      assert.is_true(runs_of "clean" > 0)
      assert.equal(0, runs_of "clean")
      shell("cd p && echo y > new && mkdir e")
      assert.equal(0, runs_of "clean")
      git("add new")
      assert.equal(1, runs_of "clean")
    end)

    it("sees what any of its files says now", function()
      write("home/.gitconfig", "[include]\n\tpath = ~/more\n", 420)
      runs_of "clean"
      assert.equal(0, runs_of "clean")
      write("home/more", "[core]\n\tpager = /tmp/x\n", 420)
      assert.equal("dirty: core.pager of more", (code():gsub("of .*/", "of ")))
      write("home/more", "[core]\n\tpager = /usr/bin/less\n", 420)
      runs_of "clean"
      shell("cd p && git config core.fsmonitor x")
      assert.equal("dirty: core.fsmonitor of .git/config", code())
      shell("cd p && git config --unset core.fsmonitor")
      runs_of "clean"
      write("p/.git/config.worktree", "[core]\n\tpager = x\n", 420)
      assert.is_true(runs_of "clean" > 0)
      shell("rm p/.git/config.worktree")
      runs_of "clean"
      write("home/.gitconfig", "[core]\n\tpager = /tmp/x\n", 420)
      assert.equal("dirty: core.pager of .gitconfig", (code():gsub("of .*/", "of ")))
    end)

    it("keeps nothing that depends on more than files", function()
      write("home/more", "[core]\n\tpager = /tmp/x\n", 420)
      write("home/.gitconfig", "[includeIf \"onbranch:other\"]\n\tpath = ~/more\n", 420)
      runs_of "clean"
      assert.is_true(runs_of "clean" > 0)
      shell("cd p && git symbolic-ref HEAD refs/heads/other")
      assert.equal("dirty: core.pager of more", (code():gsub("of .*/", "of ")))
    end)

    it("keeps nothing of files that have just changed", function()
      kept_answers.ports.now_ns = function() return ports.sys.now_us() * 1000 end
      runs_of "clean"
      assert.is_true(runs_of "clean" > 0)
    end)
  end)

  -- Every key of the table, so that a new one is tested by being there.
  it("is dirty by every code key of the repository, and names file and key", function()
    local listed = {}
    for key in pairs(keys.plain) do listed[#listed + 1] = key end
    for key in pairs(keys.any_subsection) do
      listed[#listed + 1] = (key:gsub("%.", ".a sub.", 1))
    end
    for section in pairs(keys.sections) do listed[#listed + 1] = section .. ".x.y" end
    local kept = assert(ports.fs.read_file(base .. "/p/.git/config", 65536))
    for _, key in ipairs(listed) do
      local value = key:find("url$") and "ext::x" or key:find("^alias") and "!x"
        or key:find("update$") and "!x" or key:find("pretty") and "%G?" or "x"
      local section, subsection, name = key:match("^([^.]*)%.?(.*)%.([^.]*)$")
      write("p/.git/config", ('%s[%s%s]\n\t%s = "%s"\n'):format(kept, section,
        subsection ~= "" and (' "%s"'):format(subsection) or "", name, value))
      assert.equal(("dirty: %s of .git/config"):format(key), code())
    end
    write("p/.git/config", kept)
    assert.equal("clean", code())
  end)

  it("sees what is included, of one work tree, and in other capitals", function()
    git("config core.fsmonitor false")
    assert.equal("clean", code())
    write("p/.git/more", "[CORE]\n\tFsMonitor = x\n")
    git("config includeIf.gitdir:/.path more")
    assert.matches("^dirty: includeif%.gitdir:/%.path of %.git/config", code())
    shell("cd p && git config --unset includeIf.gitdir:/.path")
    git("config extensions.worktreeConfig true")
    git("config --worktree core.pager x")
    assert.equal("dirty: core.pager of .git/config.worktree", code())
  end)

  it("takes the user's own settings, unless they lead to where a call can write", function()
    local function global(text, name)
      write(name or "home/.gitconfig", text)
      return code()
    end
    local key = "[core]\n\tpager = %s\n"
    assert.equal("clean", global(key:format("less -F")))
    assert.equal("clean", global(key:format("/usr/bin/less")))
    assert.equal("clean", global("[alias]\n\tx = !./run\n"))
    for _, value in ipairs({ "./x", "bin/x", base .. "/r/x", base .. "/p/x", "/tmp/x",
      "sh -c " .. base .. "/r/x" }) do
      assert.equal("dirty: core.pager of " .. base .. "/home/.gitconfig", global(key:format(value)))
    end
    assert.equal("clean", global("[core]\n\thooksPath = ~/hooks\n"))
    assert.matches("^dirty: core.hookspath", global("[core]\n\thooksPath = hooks\n"))
    global("[include]\n\tpath = ~/more\n")
    assert.equal("clean", global(key:format("less"), "home/more"))
    assert.equal("dirty: core.pager of " .. base .. "/home/more",
      global(key:format("/tmp/x"), "home/more"))
    assert.equal("clean", global("", "home/more"))
    -- A file in a project, reached through a link.
    write("r/config", key:format("less"))
    assert(ports.fs.unlink(base .. "/home/.gitconfig"))
    assert(ports.fs.symlink(base .. "/r/config", base .. "/home/.gitconfig"))
    assert.matches("^dirty: core.pager", code())
  end)

  it("knows the one hook that a reading command runs", function()
    write("p/.git/hooks/pre-commit", "#!/bin/sh\n", 493)
    write("p/.git/hooks/post-index-change", "#!/bin/sh\n", 420)
    assert.equal("clean", code())
    assert(ports.fs.chmod(base .. "/p/.git/hooks/post-index-change", 493))
    assert.equal("dirty: the hook post-index-change of " .. base .. "/p/.git/hooks", code())
    -- The control: git does run it.
    write("p/.git/hooks/post-index-change", "#!/bin/sh\ntouch ran\n", 493)
    shell("cd p && touch g && git status")
    assert.is_truthy(ports.fs.lstat(base .. "/p/ran"))
  end)

  it("looks into checked out submodules, at every depth", function()
    shell("git init -q -b main r/inner && cd r/inner && echo x > f && git add . "
      .. "&& git -c user.name=a -c user.email=a@b commit -qm one")
    git("submodule add -q ../r/inner sub")
    assert.equal("clean", code())
    shell("cd p/sub && git config core.fsmonitor x")
    assert.matches("^dirty: core.fsmonitor of .*/p/%.git/modules/sub/config$", code())
    shell("cd p/sub && git config --unset core.fsmonitor")
    assert.equal("clean", code())
    -- One that only the index names, whose git directory lies in it.
    shell("cd p && git init -q nested && cd nested && "
      .. "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && "
      .. "cd .. && git add nested && git -C nested config diff.external x")
    assert.matches("^dirty: diff.external", code())
  end)

  it("reads the settings of a linked work tree where they are", function()
    git("worktree add -q ../linked")
    assert.equal("clean", code(base .. "/linked"))
    git("config core.pager x")
    assert.matches("^dirty: core.pager of .*/p/%.git/config$", code(base .. "/linked"))
  end)

  it("is not clean where it cannot know", function()
    for name, line in pairs({
      ["a linked .git"] = "mv p/.git r/g && ln -s ../r/g p/.git",
      ["a .git file to nowhere"] = "rm -rf p/.git && echo gitdir: ../r/none > p/.git",
      ["a bare repository"] = "rm -rf p && git init -q --bare p",
      ["a git directory of another one"] = "echo ../../r > p/.git/commondir",
      ["a damaged config"] = "echo '[' > p/.git/config",
      ["a pipe for a config"] = "rm p/.git/config && mkfifo p/.git/config",
      ["a submodule behind a link"] = "cd p && git update-index --add --cacheinfo "
        .. "160000,0123456789012345678901234567890123456789,ln && ln -s ../r ln",
    }) do
      budget = name:find("pipe") and 150 or 20000
      shell("cp -a p saved && " .. line)
      assert.is_not.equal("clean", code(), name)
      shell("rm -rf p && mv saved p")
    end
    budget = 20000
    assert.equal("clean", code())
    env.GIT_EXTERNAL_DIFF = "x"
    assert.equal("unknown", code())
    env.GIT_EXTERNAL_DIFF, env.GIT_AUTHOR_NAME = nil, "a"
    assert.equal("clean", code())
  end)

  it("asks the hidden shell's variables, not its own", function()
    env.GIT_DIR, shell_env = "/x", { HOME = base .. "/home", GIT_PAGER = "cat" }
    assert.equal("clean", code())
    for name, value in pairs({ GIT_DIR = base .. "/r/.git", GIT_WORK_TREE = "/x", GIT_PAGER = "less",
      GIT_CONFIG_COUNT = "1", GIT_CONFIG_PARAMETERS = "'a.b'='c'", GIT_SSH_COMMAND = "x",
      GIT_TRACE = "/tmp/x", GIT_EXTERNAL_DIFF = "x", HOME = base .. "/r" }) do
      shell_env = { HOME = base .. "/home", GIT_PAGER = "cat" }
      shell_env[name] = value
      assert.same({ "unknown", name }, { ask("code", { base .. "/p" }).state,
        ask("code", { base .. "/p" }).variable })
      assert.equal("unknown", ask("remote", { base .. "/p" }).state)
    end
    shell_env = { HOME = base .. "/home" }
    assert.equal("GIT_PAGER", ask("code", { base .. "/p" }).variable)
    shell_env = false
    assert.equal("unknown", code())
    -- Settings that a variable leads to are read.
    write("r/settings", "[core]\n\tfsmonitor = ./evil\n")
    shell_env = { HOME = base .. "/home", GIT_PAGER = "cat", GIT_CONFIG_GLOBAL = base .. "/r/settings" }
    assert.equal(("dirty: core.fsmonitor of %s/r/settings"):format(base), code())
    shell_env = nil
  end)

  it("shows no control character of a key", function()
    git("config 'diff.a\27[2J\xff.textconv' x")
    assert.equal("dirty: diff.a?[2J?.textconv of .git/config", code())
  end)

  it("tells whether a call could have written what git runs on the way to a remote", function()
    local function remote(dir)
      local found = ask("remote", { dir or base .. "/p" })
      return found.file and found.state .. ": " .. found.file or found.state
    end
    local project = "dirty: " .. base .. "/p/"
    assert.equal("clean", remote())
    assert.equal("unknown", remote(base .. "/plain"))
    -- Of a repository that no call writes, everything is the user's.
    git("config core.sshCommand 'ssh -i key'")
    write("p/.git/hooks/pre-push", "#!/bin/sh\n", 493)
    assert.equal("clean", remote())
    -- Of a project, settings and hooks are floors, but not what they lead to.
    machine.project_roots = { base .. "/p" }
    assert.equal("clean", remote())
    git("config core.sshCommand ./ssh.sh")
    assert.equal(project .. "./ssh.sh", remote())
    git("config core.sshCommand ssh")
    git("config core.hooksPath .husky")
    shell("mkdir p/.husky p/scripts && ln -s ../scripts/x p/.husky/pre-push && echo > p/scripts/x "
      .. "&& chmod 755 p/scripts/x && echo > p/.husky/commit-msg && chmod 755 p/.husky/commit-msg")
    assert.equal(project .. ".husky/pre-push", remote())
    shell("rm p/.husky/pre-push")
    assert.equal("clean", remote())
    -- A repository inside of a project is written like any file of it.
    shell("git init -q p/nested && git -C p/nested config core.pager less")
    assert.equal(project .. "nested/.git/config", remote(base .. "/p/nested"))
    shell("git -C p/nested config --unset core.pager && echo > p/nested/.git/hooks/pre-push "
      .. "&& chmod 755 p/nested/.git/hooks/pre-push")
    assert.equal(project .. "nested/.git/hooks/pre-push", remote(base .. "/p/nested"))
    write("home/.gitconfig", "[core]\n\tsshCommand = /tmp/x\n")
    assert.equal("dirty: /tmp/x", remote())
    env.GIT_SSH = "x"
    assert.equal("unknown", remote())
  end)

  it("names the remotes, and a directory among them that a call could have written", function()
    local function remote() return ask("remote", { base .. "/p" }) end
    assert.same({}, remote().remotes)
    git("remote add origin https://h/r")
    git("remote add there /srv/r")
    git("config branch.x.remote there")
    git("config branch.y.remote .")
    machine.project_roots = { base .. "/p" }
    assert.same({ state = "clean", remotes = { origin = true, there = true } }, remote())
    for _, setting in ipairs { "remote.evil.url evil", "remote.there.pushurl file://" .. base .. "/p/x",
      "branch.x.pushRemote ./evil", "remote.pushDefault /tmp/evil" } do
      git("config " .. setting)
      assert.equal("dirty", remote().state, setting)
      git("config --unset " .. setting:match("^%S+"))
      assert.equal("clean", remote().state)
    end
  end)

  it("counts the tracked files of a directory", function()
    assert.equal(1, ask("tracked", base .. "/p/d"))
    assert.equal(2, ask("tracked", base .. "/p"))
    shell("mkdir 'p/*' && touch 'p/*/new'")
    assert.equal(0, ask("tracked", base .. "/p/*"))
    assert.equal(0, ask("tracked", base .. "/plain"))
    assert.is_nil(ask("tracked", base .. "/gone"))
    shell("rm p/.git/index && mkfifo p/.git/index")
    budget = 150
    assert.is_nil(ask("tracked", base .. "/p/d"))
  end)
end)
