-- What a PATH has for a name, and when the name is trusted.
local search = require "efr.perm.program_search"

local MACHINE = { home = "/home/u", project_roots = { "/home/u/p" }, write_roots = { "/srv/w" }, scratch = "/home/u/s" }

-- A fake disk: {path = {type=, real=, mode=, link=}}.
local function disk(entries)
  return {
    stat = function(path)
      local entry = entries[path]
      if not entry then return nil, "not there", "ENOENT" end
      if entry.closed then return nil, "no", "EACCES" end
      return { type = entry.type or "dir", mode = entry.mode or 493 }
    end,
    realpath = function(path) return entries[path] and (entries[path].real or path) or nil end,
    readlink = function(path) return entries[path] and entries[path].link end,
  }
end

local FILE = { type = "file" }

local function found(path_variable, entries, name)
  entries["/usr/bin"] = {}
  entries["/usr/bin/ls"] = entries["/usr/bin/ls"] or FILE
  for path in pairs({ ["/home/u/p/bin"] = 1, ["/tmp"] = 1, ["/home/u/bin"] = 1, ["/bin"] = 1 }) do
    entries[path] = entries[path] or {}
  end
  return search.new(disk(entries), path_variable, MACHINE)(name or "ls")
end

describe("perm.program_search", function()
  it("trusts the first file when all before it is closed", function()
    assert.same({ file = "/usr/bin/ls" }, found("/home/u/bin:/usr/bin:/home/u/p/bin", {}))
    assert.same({ file = "/home/u/bin/ls" }, found("/home/u/bin:/usr/bin", { ["/home/u/bin/ls"] = FILE }))
    -- A name that nothing has runs nothing.
    assert.same({}, found("/home/u/bin:/usr/bin", {}, "lsblk"))
    -- zsh goes on behind a file that it may not run, and behind what is no file.
    local some = { ["/home/u/bin/ls"] = { type = "file", mode = 448 }, ["/bin/ls"] = { type = "dir" } }
    assert.same({ file = "/home/u/bin/ls" }, found("/bin:/home/u/bin:/usr/bin", some))
  end)

  it("trusts no file behind a directory that changes without a question", function()
    local paths = {
      "/home/u/p/bin:/usr/bin", "/home/u/p/none:/usr/bin", "/srv/w/x:/usr/bin", "/home/u/s:/usr/bin",
      "/tmp/x:/usr/bin", "/var/tmp:/usr/bin", "/dev/shm:/usr/bin", ".:/usr/bin", ":/usr/bin",
      "bin::/usr/bin", "~/bin:/usr/bin", "/home/u/bin/../p/bin:/usr/bin", "/usr/../tmp:/usr/bin",
      "../x:/usr/bin",
    }
    for _, path in ipairs(paths) do assert.is_string(found(path, {}).doubt, path) end
    assert.is_string(found("/usr/bin:/home/u/p/bin", {}, "lsblk").doubt)
    assert.is_string(found("/usr/bin:", {}, "lsblk").doubt)
    assert.is_string(found("/home/u/open:/usr/bin", { ["/home/u/open"] = { mode = 511 } }).doubt)
    assert.is_string(found("/home/u/bin:/usr/bin", { ["/home/u/bin/ls"] = { closed = true } }).doubt)
    assert.is_string(found("/home/u/bin:/home/u/p/bin:/usr/bin",
      { ["/home/u/bin/ls"] = { type = "file", mode = 448 } }).doubt)
  end)

  it("follows links", function()
    local function doubt(entries) return found("/bin:/usr/bin", entries).doubt end
    assert.is_nil(doubt { ["/bin"] = { real = "/usr/bin", link = "usr/bin" } })
    assert.is_string(doubt { ["/bin"] = { real = "/home/u/p/bin", link = "/home/u/p/bin" } })
    assert.is_string(doubt { ["/bin/ls"] = { type = "file", real = "/home/u/p/ls", link = "../home/u/p/ls" } })
    -- A link through a project back to the system.
    assert.is_string(doubt { ["/bin/ls"] = { type = "file", real = "/usr/bin/ls", link = "/home/u/p/ls" } })
    assert.is_string(doubt { ["/bin"] = { real = "/usr/bin", link = "/home/u/p/l" } })
    assert.is_string(doubt { ["/bin/ls"] = { type = "file", real = "/bin/ls", link = "/bin/ls" } })
    assert.is_string(doubt { ["/bin/ls"] = { type = "file", mode = 511 } })
  end)

  it("takes no home directory for a project", function()
    local machine = { home = "/home/u", project_roots = { "/home/u", "/home", "/" } }
    local fs = disk { ["/home/u/bin"] = {}, ["/home/u/bin/ls"] = FILE }
    assert.same({ file = "/home/u/bin/ls" }, search.new(fs, "/home/u/bin", machine)("ls"))
    -- But what everybody may write stays open, also where the home directory lies in it.
    machine.home = "/tmp/u"
    assert.is_string(search.new(disk {}, "/tmp/x:/usr/bin", machine)("ls").doubt)
  end)

  it("trusts nothing without a PATH", function()
    assert.is_string(found(nil, {}).doubt)
    assert.is_string(found("", {}).doubt)
    assert.is_string(found(("/usr/bin:"):rep(200), {}).doubt)
    assert.is_string(found("/usr/bin", {}, "bin/ls").doubt)
  end)
end)
