-- Owns: a real contained call for every mask and every floor of the tables. Run by places.sh, in a
-- mount namespace where also places of the system can be made.
local contained = require "spec.support.contained"
local floors = require "efr.sbx.floors"
local floor_data = require "efr.perm.floors"
local masks = require "efr.sbx.masks"
local paths = require "efr.perm.paths"

local AS_ROOT <const> = contained.ports.sys.getuid() == 0

-- Reads and writes every path that it gets; one row each: path, what was read, how a write ended.
local TRY <const> = [=[
for place in "${(@f)$(<list)}"; do
  print -rn -- "$place|"
  { cat -- "$place" 2>&1 } | tr -d '\n'
  print -n "|"
  if { print x >>"$place" } 2>/dev/null; then print wrote
  elif mv -f "$place" "$place.moved" 2>/dev/null; then print moved
  elif [[ -e $place ]] && rm -rf -- "$place" 2>/dev/null; then print removed
  else print refused; fi
done]=]

local function try(world, list, opts)
  world:file("home/p/list", table.concat(list, "\n") .. "\n")
  local _, output = world:run(TRY, opts)
  local seen = {}
  for path, read, wrote in output:gmatch("([^|\n]*)|([^|\n]*)|(%a+)\n") do
    seen[path] = { read = read, wrote = wrote }
  end
  return seen, output
end

describe("masks, each in a contained call", function()
  local world, files, seen, output

  -- A file for each candidate; where one is above another it becomes a directory by itself.
  local function make(path)
    for _, other in ipairs(files) do
      if paths.within(other, path) then return end
    end
    local is_dir = (contained.ports.fs.stat(path) or {}).type == "dir"
    files[#files + 1] = world:file(is_dir and path .. "/x" or path, "SECRET\n")
  end

  setup(function()
    world, files = contained.new(), {}
    world.settings["sandbox.mask"] = { world.base .. "/home/mine" }
    world.settings["permissions.secret_paths"] = { world.base .. "/home/secret" }
    world.settings["sandbox.mask_globs"] = { ".env" }
    world.app.env.XAUTHORITY = world.base .. "/home/xauth"
    world.app.env.HISTFILE = world.base .. "/home/hist"
    world.app.env.XDG_RUNTIME_DIR = nil
    local home, wanted = world.base .. "/home", {}
    for _, names in ipairs({ masks.STORES, masks.TOOL_CREDENTIALS, masks.PROFILES,
      masks.HISTORIES }) do
      for _, name in ipairs(names) do wanted[#wanted + 1] = home .. "/" .. name end
    end
    for _, path in ipairs(paths.prepare({ home = home }).secrets) do
      if paths.within(path, home) then wanted[#wanted + 1] = path end
    end
    for _, pattern in ipairs(masks.SOCKET_DIRS) do wanted[#wanted + 1] = pattern:gsub("%*", "-x") end
    for _, path in ipairs({ "/run/secrets/token", "/run/systemd/resolve/other", home .. "/mine",
      home .. "/secret", home .. "/xauth", home .. "/hist", home .. "/p/.env",
      world.base .. "/data/x", world.base .. "/state/x", world.base .. "/runtime/x" }) do
      wanted[#wanted + 1] = path
    end
    if AS_ROOT then
      for _, pattern in ipairs(masks.ROOT) do
        wanted[#wanted + 1] = pattern:gsub("%*", "x")
      end
    end
    -- The longest first, so that what holds others is made as a directory.
    table.sort(wanted, function(a, b) return #a > #b end)
    for _, path in ipairs(wanted) do make(path) end
    make("/run/systemd/resolve/stub-resolv.conf")
    world:file("/run/plain/file", "SECRET\n")
    world:file("/run/linked", "SECRET\n")
    assert(contained.ports.fs.symlink("/run/linked", home .. "/.config/Bitwarden-link"))
    table.insert(world.settings["sandbox.mask"], home .. "/.config/Bitwarden-link")
    files[#files + 1] = "/run/linked"
    seen, output = try(world, files)
  end)

  teardown(function() world:close() end)

  it("hides each of them and refuses to write it", function()
    local count = 0
    for _, path in ipairs(files) do
      local row = assert(seen[path], path .. " has no row in\n" .. output)
      assert.are.equal("refused", row.wrote, path)
      if path ~= "/run/systemd/resolve/stub-resolv.conf" then
        assert.is_nil(row.read:find("SECRET", 1, true), path)
        count = count + 1
      end
    end
    assert.is_true(count > 75, "only " .. count)
  end)

  it("leaves every file outside as it was", function()
    for _, path in ipairs(files) do
      assert.are.equal("SECRET\n", contained.ports.fs.read_file(path, 100), path)
    end
  end)

  it("shows the resolver's files and the rest of /run", function()
    assert.are.equal("SECRET", seen["/run/systemd/resolve/stub-resolv.conf"].read)
    local _, shown = world:run("cat /run/plain/file; ls -A /run/systemd /run/systemd/resolve")
    assert.are.equal("SECRET\n/run/systemd:\nresolve\n\n/run/systemd/resolve:\nstub-resolv.conf\n",
      shown)
  end)

  it("makes no name that was not there", function()
    local empty = contained.new()
    local _, shown = empty:run("ls -A ~ ~/.config ~/p 2>&1", { env = "" })
    empty:close()
    assert.is_truthy(shown:find("/home:\n.ssh\np\n", 1, true), shown)
    assert.is_nil(shown:find(".aws", 1, true))
  end)
end)

describe("floors, each in a contained call", function()
  local world, home, wanted

  -- ~/NAME is a link to a file in the root ~/dot.
  local function link(name)
    local target = world:file(("home/dot/%d"):format(#wanted + 1), "KEPT\n")
    assert(contained.ports.fs.mkdirs((home .. "/" .. name):match("^(.*)/"), 448))
    assert(contained.ports.fs.symlink(target, home .. "/" .. name))
    wanted[#wanted + 1] = target
  end

  setup(function()
    world, wanted = contained.new(), {}
    home = world.base .. "/home"
    world.app.paths.config = home .. "/.config/efr"
    for _, names in ipairs({ floor_data.STARTUP, floor_data.AUTOSTART, floor_data.TOOLS }) do
      for _, name in ipairs(names) do
        -- Names below a linked directory of the table are that directory's.
        if not name:find("^%.local/bin/") then link(name) end
      end
    end
    for _, name in ipairs({ ".unknown", ".config/unknown", ".config/efr/rules.lua",
      ".config/efr/rules.d/one.lua" }) do
      link(name)
    end
    for _, name in ipairs(floor_data.AGENTS) do
      wanted[#wanted + 1] = world:file("home/p/" .. name, "KEPT\n")
      wanted[#wanted + 1] = world:file("home/dot/other/" .. name, "KEPT\n")
    end
    for _, name in ipairs(floors.ZDOTDIR_FILES) do
      wanted[#wanted + 1] = world:file("home/dot/z/" .. name, "KEPT\n")
    end
    world.app.env.ZDOTDIR = home .. "/dot/z"
    world.exe = home .. "/p/prog/bin/efrd"
    for _, name in ipairs(floors.BINARIES) do
      local inner = name:match("^%.%./(.*)$")
      local path = "home/p/prog/" .. (inner and inner .. "/x" or "bin/" .. name)
      if name ~= "efr-sbx" then wanted[#wanted + 1] = world:file(path, "KEPT\n") end
    end
    world.copy = world:file("home/p/prog/bin/efr-sbx",
      contained.ports.fs.read_file(contained.BIN .. "/efr-sbx", 1 << 26))
    assert(contained.ports.fs.chmod(world.copy, 493))
    wanted[#wanted + 1] = world:file("home/p/keep/file", "KEPT\n")
    world.settings["sandbox.protect"] = { home .. "/p/keep" }
    wanted[#wanted + 1] = world:file("home/dot/daemon-path/prog", "KEPT\n")
    world.app.env.PATH = "/usr/bin:/bin:" .. home .. "/dot/daemon-path"
    world.settings["sandbox.write_roots"] = { home .. "/dot" }
    world.projects = { { root = home .. "/dot/other" }, { root = home .. "/p" } }
  end)

  teardown(function() world:close() end)

  local function check(list, opts)
    local seen, output = try(world, list, opts)
    for _, path in ipairs(list) do
      local row = assert(seen[path], path .. " has no row in\n" .. output)
      assert.are.same({ read = "KEPT", wrote = "refused" }, row, path)
      assert.are.equal("KEPT\n", contained.ports.fs.read_file(path, 100), path)
    end
  end

  it("keeps each of them, and other files of the roots can be written", function()
    check(wanted)
    assert.is_true(#wanted > 60, "only " .. #wanted)
    local free = world:file("home/dot/free", "KEPT\n")
    local seen, output = try(world, { free })
    assert.are.equal("wrote", (seen[free] or { wrote = output }).wrote)
    local result = world:run("rm -f prog/bin/efr-sbx || mv prog/bin/efr-sbx x")
    assert.are.equal(1, result.exit_code)
    assert.is_truthy(contained.ports.fs.stat(world.copy))
  end)
end)
