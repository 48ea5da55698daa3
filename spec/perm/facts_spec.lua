-- What is added to a declaration: paths and dangers of lines, real places, facts, limits.
local facts = require "efr.perm.facts"

local function collect(line, ports, home)
  return facts.collect(ports or {}, { { kind = "line", text = line, cwd = "/w" } }, home or "/home/u")
end

local function kinds(requirements)
  local out = {}
  for i = 2, #requirements do
    local item = requirements[i]
    out[#out + 1] = item.kind .. (item.path and " " .. item.path or "")
  end
  return table.concat(out, ", ")
end

-- A fake disk: {path = {type=, real=}}.
local function disk(entries)
  return {
    stat = function(path)
      local entry = entries[path]
      if entry then return { type = entry.type, mode = 493 } end
      return nil, "not there", "ENOENT"
    end,
    realpath = function(path) return entries[path] and (entries[path].real or path) end,
    lstat = function(path)
      return entries[path] and entries[path].real and { type = "link" } or nil
    end,
    readdir = function(path) return entries[path] and entries[path].names or {} end,
  }
end

describe("perm.facts", function()
  it("declares what a line reads, writes and may do", function()
    assert.equal("write /w/b, read /w/a", kinds(collect("cat a > b")))
    assert.is_truthy(kinds(collect("sudo ls")):find("interactive", 1, true))
    assert.is_truthy(kinds(collect("curl https://h")):find("network", 1, true))
    assert.is_truthy(kinds(collect("scp a h:")):find("may_prompt", 1, true))
    assert.equal("read /", kinds(collect("echo $(")))
  end)

  it("declares the real place behind a name too, also of one that does not exist yet", function()
    local fs = disk { ["/"] = {}, ["/w"] = {}, ["/w/l"] = { real = "/secret/x" },
      ["/w/d"] = { real = "/etc" } }
    local ports = facts.ports(fs, "", {})
    assert.equal("read /w/l, read /secret/x", kinds(collect("cat l", ports)))
    assert.equal("write /w/d/new, write /etc/new", kinds(collect("touch d/new", ports)))
    assert.equal("write /w/new", kinds(collect("touch new", ports)))
  end)

  it("says what targets are, up to the first that exists", function()
    local fs = disk { ["/"] = { type = "dir" }, ["/w"] = { type = "dir" }, ["/w/f"] = { type = "file" },
      ["/w/s"] = { type = "socket" } }
    local _, known = collect("touch f a/b/c s", facts.ports(fs, "", {}))
    assert.same({ ["/w/f"] = "file", ["/w/a/b/c"] = "missing", ["/w/a/b"] = "missing",
      ["/w/a"] = "missing", ["/w"] = "dir", ["/w/s"] = "other" }, known.targets)
    local blind = facts.ports({ stat = function() return nil, "no", "EACCES" end,
      lstat = function() return nil, "no", "EACCES" end,
      realpath = function() return nil end }, "", {})
    assert.same({}, select(2, collect("touch f", blind)).targets)
  end)

  it("says what the name of a target reaches, and where file systems are mounted", function()
    local fs = disk { ["/"] = {}, ["/w"] = {}, ["/w/l"] = { type = "dir", real = "/etc" },
      ["/w/l/f"] = { type = "file", real = "/etc/f" } }
    fs.read_file = function()
      return "1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / /mnt/a\\040b rw - tmpfs t rw\n"
    end
    local ports = facts.ports(fs, "", {})
    local _, known = collect("rm l l/f", ports)
    assert.same({ ["/w/l"] = "/etc", ["/w/l/f"] = "/etc/f" }, known.reals)
    assert.same({ ["/w/l/f"] = "/etc/f" }, known.parents)
    assert.same({ ["/"] = true, ["/mnt/a b"] = true }, ports.mounts())
  end)

  it("counts no tracked files outside of a repository and in what a build makes anew", function()
    local fs = disk { ["/"] = { type = "dir" }, ["/w"] = { type = "dir" }, ["/w/.git"] = { type = "dir" },
      ["/w/src"] = { type = "dir" }, ["/w/target"] = { type = "dir" }, ["/o"] = { type = "dir" } }
    local function tracked(names)
      return select(2, collect("rm -r src target /o", facts.ports(fs, "", { rebuildable = names })))
        .tracked
    end
    assert.same({ ["/w/target"] = 0, ["/o"] = 0 }, tracked { "target" })
    assert.same({ ["/w/src"] = 0, ["/o"] = 0 }, tracked { "src" })
    assert.same({ ["/o"] = 0 }, tracked(nil))
  end)

  it("does not know what git would run", function()
    assert.same({ state = "unknown" }, select(2, collect("git status")).git_code)
    local asked
    local ports = { git_code = function(dirs)
      asked = dirs
      return { state = "clean" }
    end }
    assert.equal("clean", select(2, collect("git status", ports)).git_code.state)
    assert.same({ "/w" }, asked)
    collect("cd x; git status", ports)
    assert.same({ "/w", "/w/x" }, asked)
    -- Nothing that can read only has to know it.
    assert.is_nil(select(2, collect("git push", ports)).git_code)
  end)

  it("knows nothing of git without a port for it, nor of places that are gone", function()
    assert.is_nil(facts.ports(disk {}, "", { home = "/home/u" }).git_code)
    local git = { env = {}, within = function() return function() error("asked") end end }
    local ports = facts.ports(disk {}, "", { home = "/home/u" }, git)
    assert.same({ state = "unknown" }, ports.git_code({ "/gone" }))
    assert.is_nil(ports.tracked("/gone"))
  end)

  it("asks what git runs on the way to a remote, for lines that go there in their own place", function()
    local asked
    local ports = { remote_code = function(dirs)
      asked = dirs
      return { state = "dirty", file = "/w/x" }
    end }
    local function code(line)
      asked = nil
      local known = select(2, collect(line, ports))
      return known.remote_code, known.remote_part
    end
    assert.same({ "dirty", "/w/x" }, { code("git push") })
    assert.same({ "/w" }, asked)
    assert.equal("dirty", (code("git fetch origin; ls")))
    for _, line in ipairs { "git -C /x push", "git --git-dir=/x fetch", "git push $(" } do
      assert.equal("unknown", (code(line)), line)
      assert.is_nil(asked)
    end
    assert.is_nil(code("git status"))
    assert.is_nil(code("ls push"))
  end)

  it("counts tracked files through the port", function()
    local fs = disk { ["/"] = { type = "dir" }, ["/w"] = { type = "dir" }, ["/w/.git"] = { type = "dir" },
      ["/w/src"] = { type = "dir" } }
    local ports = facts.ports(fs, "", {})
    ports.tracked = function(path) return path == "/w/src" and 7 or nil end
    assert.same({ ["/w/src"] = 7 }, select(2, collect("rm -r src", ports)).tracked)
  end)

  it("finds programs in absolute directories, and marks builtins", function()
    local fs = disk { ["/bin"] = { type = "dir" }, ["/bin/ls"] = { type = "file", real = "/usr/bin/ls" },
      ["/usr/bin/ls"] = { type = "file" }, ["/usr/bin"] = { type = "dir" }, ["./x"] = { type = "file" } }
    local _, known = collect("ls; cd x; x", facts.ports(fs, ".:/bin", {}))
    local why = "PATH holds ., which depends on the directory"
    assert.same({ { word = "ls", resolved = "/usr/bin/ls", untrusted = why },
      { word = "cd", builtin = true }, { word = "x", untrusted = why } }, known.programs)
    assert.same({ ls = why, cd = why, x = why }, known.found)
    _, known = collect("ls; rg x; env wc", facts.ports(fs, "/bin", {}))
    assert.same({ ls = true, rg = true, wc = true, env = true }, known.found)
  end)

  it("says which programs changed in the turn", function()
    local fs = disk { ["/bin"] = { type = "dir" }, ["/bin/ls"] = { type = "file" }, ["/bin/wc"] = { type = "file" } }
    local ports = facts.ports(fs, "/bin", {})
    function ports.changed(file) return file == "/bin/wc" end
    local _, known = collect("ls; wc", ports)
    assert.same({ { word = "ls", resolved = "/bin/ls" },
      { word = "wc", resolved = "/bin/wc", untrusted = "it changed in this turn",
        changed = true } }, known.programs)
  end)

  it("trusts no program that runs another which it does not trust", function()
    local fs = disk { ["/bin"] = { type = "dir" }, ["/bin/egrep"] = { type = "file" },
      ["/tmp/bin"] = { type = "dir" }, ["/tmp/bin/grep"] = { type = "file" } }
    local _, known = collect("egrep x y", facts.ports(fs, "/bin:/tmp/bin", {}))
    assert.is_truthy(known.found.egrep:find("it may run grep, and /tmp/bin lies in /tmp", 1, true))
  end)

  it("finds hidden files where a line prints what trees hold", function()
    local fs = disk { ["/w"] = { names = { { name = ".env", type = "file" },
      { name = "node_modules", type = "dir" }, { name = "sub", type = "dir" } } },
      ["/w/sub"] = { names = { { name = ".env", type = "file" } } },
      ["/w/node_modules"] = { names = { { name = ".env", type = "file" } } } }
    local ports = facts.ports(fs, "", { project_roots = { "/w" }, mask_globs = { ".env" } })
    ports.realpath, ports.stat = nil, nil
    assert.equal("read /w, read /w/.env, read /w/sub/.env", kinds(collect("grep -r x .", ports)):gsub("/%.,", ","))
    assert.equal("read /w", kinds(collect("du .", ports)):gsub("/%.$", ""))
  end)

  it("looks at a limited number of paths, and then reads anything", function()
    local count = 0
    local ports = { realpath = function() count = count + 1 end }
    local requirements = collect("cat " .. ("a"):rep(1) .. (" x"):rep(10), ports)
    assert.is_true(#requirements < 10)
    local words = {}
    for i = 1, 400 do words[i] = "f" .. i end
    requirements = collect("cat " .. table.concat(words, " "), ports)
    local last = requirements[#requirements]
    assert.same({ kind = "read", path = "/", tree = true, unknown = true }, last)
  end)
end)
