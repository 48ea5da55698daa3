-- Records of projects whose git directory lies elsewhere, with real git. Needs efr's C modules.
if not package.preload["efr.fs"] then return end

local git_records = require "efr.sbx.git_records"
local fs, json, sys = require "efr.fs", require "efr.json", require "efr.sys"

describe("sbx.git_records", function()
  local base, deps

  local function shell(line)
    assert(os.execute(("cd '%s' && export HOME='%s' GIT_CONFIG_NOSYSTEM=1 && { %s; } >/dev/null 2>&1")
      :format(base, base, line)), line)
  end

  before_each(function()
    base = fs.realpath(os.getenv("TMPDIR") or "/tmp") .. "/efr-records-spec." .. sys.getpid()
    assert(fs.mkdirs(base .. "/main", 448))
    deps = { fs = fs, json = json, state = base .. "/state" }
    shell("git config --global user.email a@b; git config --global user.name a; "
      .. "git config --global protocol.file.allow always; cd main && git init -q && "
      .. "git commit -q --allow-empty -m one && git worktree add -q ../linked && "
      .. "git init -q ../super && cd ../super && git submodule --quiet add ../main libs/sub")
  end)

  after_each(function() fs.rmtree(base) end)

  it("records a linked work tree and a submodule, and gives them back", function()
    local linked, sub = base .. "/linked", base .. "/super/libs/sub"
    assert.same({ root = linked, git_dir = base .. "/main/.git/worktrees/linked",
      common_dir = base .. "/main/.git" }, git_records.make(deps, linked))
    local dir = base .. "/super/.git/modules/libs/sub"
    assert.same({ root = sub, git_dir = dir, common_dir = dir }, git_records.make(deps, sub))
    assert.equal(base .. "/main/.git", git_records.read(deps, linked).common_dir)
    assert.equal(dir, git_records.read(deps, sub).common_dir)
    local info = fs.lstat(("%s/state/sandbox/projects/%s.json"):format(base,
      linked:sub(2):gsub("/", "%%")))
    assert.equal(384, info.mode & 511)
  end)

  it("has nothing to say of a plain repository or none", function()
    for _, dir in ipairs({ "/main", "/super", "" }) do
      assert.same({}, { git_records.make(deps, base .. dir) })
      assert.same({}, { git_records.read(deps, base .. dir) })
    end
  end)

  it("gives nothing without a record, after a removal and when the files say otherwise", function()
    local linked = base .. "/linked"
    local function refused()
      local record, note = git_records.read(deps, linked)
      assert.is_nil(record)
      assert.matches("run `efr project add " .. linked, note, 1, true)
    end
    refused()
    assert(git_records.make(deps, linked))
    shell("git -C main worktree add -q ../other")
    for _, line in ipairs({ "echo gitdir: " .. base .. "/main/.git/worktrees/other > linked/.git",
      "echo nonsense > linked/.git", "head -c 5000 /dev/zero | tr '\\0' x > linked/.git",
      "echo ../../../super/.git > main/.git/worktrees/linked/commondir",
      "rm main/.git/worktrees/linked/HEAD",
      "mv main/.git/worktrees/linked main/.git/worktrees/moved" }) do
      assert(git_records.read(deps, linked))
      shell("cp -a linked l && cp -a main m && " .. line)
      refused()
      shell("rm -rf linked main && mv l linked && mv m main")
    end
    git_records.remove(deps, linked)
    refused()
  end)

  it("takes no record of another project, nor a damaged one", function()
    local linked = base .. "/linked"
    assert(git_records.make(deps, linked))
    local file = ("%s/state/sandbox/projects/%s.json"):format(base, linked:sub(2):gsub("/", "%%"))
    local text = fs.read_file(file, 65536)
    for _, bad in ipairs({ "", "{", "[]", "7", (text:gsub('"root":"[^"]*"', '"root":"/x"')),
      (text:gsub('"git_dir":"[^"]*"', '"git_dir":7')) }) do
      assert(fs.write_atomic(file, bad, 384))
      assert.is_nil((git_records.read(deps, linked)))
    end
    assert(fs.write_atomic(file, text, 384))
    assert(git_records.read(deps, linked))
  end)

  it("records no file that leads to a repository which does not know the project", function()
    shell("mkdir planted planted2 && echo gitdir: ../main/.git > planted/.git && "
      .. "echo gitdir: ../main/.git/worktrees/linked > planted2/.git")
    for _, name in ipairs({ "planted", "planted2" }) do
      local record, why = git_records.make(deps, base .. "/" .. name)
      assert.is_nil(record)
      assert.matches("does not know this work tree", why)
    end
    shell("echo gitdir: /etc > planted/.git")
    local _, why = git_records.make(deps, base .. "/planted")
    assert.matches("no git directory", why)
  end)
end)
