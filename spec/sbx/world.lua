-- A made-up machine for the specs of the sandbox plan: paths and their types, links included.
local M = {}

local HOME <const> = "/home/u"

-- files: path -> "dir" | "file" | {link = target}; `passed` gets the links on the way
local function look(files, path, passed)
  local function real(p, hops)
    if hops > 20 then return nil end
    local done = ""
    for place, part in p:gmatch("()([^/]+)") do
      local at = part == ".." and done:match("^(.*)/") or done .. "/" .. part
      local entry = files[at]
      if type(entry) == "table" then
        if passed then passed[#passed + 1] = at end
        local target = entry.link:sub(1, 1) == "/" and entry.link or done .. "/" .. entry.link
        return real(target .. p:sub(place + #part), hops + 1)
      end
      done = at
    end
    return done == "" and "/" or done
  end
  local target = real(path, 0)
  if not target or not (files[target] or target == "/") then return nil end
  local dir, base = path:match("^(.*)/([^/]+)$")
  local parent = dir and real(dir == "" and "/" or dir, 0)
  local name = base and ((parent == "/" and "" or parent) .. "/" .. base) or "/"
  local link = type(files[name]) == "table"
  return { real = target, name = name, link = link, type = files[target] or "dir" }
end

---A spec for plan.build with defaults; `changes` overrides fields, `files` adds to the machine.
function M.spec(changes, files)
  local all = {
    ["/home"] = "dir", [HOME] = "dir", ["/home/u/p"] = "dir", ["/home/u/p/app"] = "dir",
    ["/home/u/.config"] = "dir", ["/home/u/.config/efr"] = "dir", ["/tmp"] = "dir",
    ["/home/u/.local/share/efr"] = "dir", ["/home/u/.local/state/efr"] = "dir",
    ["/home/u/.local/share/efr/scratch/one"] = "dir", ["/run/user/1000/efr"] = "dir",
    ["/run/user"] = "dir", ["/home/u/.ssh"] = "dir", ["/etc/shadow"] = "file",
  }
  for path, kind in pairs(files or {}) do all[path] = kind end
  local spec = {
    uid = 1000, nonce = ("0f"):rep(16), cwd = "/home/u/p/app", home = HOME,
    env = { PATH = "/usr/bin:/bin" },
    paths = {
      config = "/home/u/.config/efr", data = "/home/u/.local/share/efr",
      state = "/home/u/.local/state/efr", runtime = "/run/user/1000/efr",
    },
    tmp = "/home/u/.local/state/efr/sandbox/c1/tmp", xrt = "/run/user/1000",
    assets = "/run/user/1000/efr/sbx/c1/k1/in", records = true,
    argv = { "/usr/bin/zsh", "-f" }, project_root = "/home/u/p/app",
    look = function(path) return look(all, path) end,
    list = function(dir)
      local names = {}
      for path in pairs(all) do
        local parent, name = path:match("^(.*)/([^/]+)$")
        if parent == dir then names[#names + 1] = name end
      end
      return names
    end,
    entries = function(dir)
      local out = {}
      for path, kind in pairs(all) do
        local parent, name = path:match("^(.*)/([^/]+)$")
        if parent == dir then
          out[#out + 1] = { name = name, type = type(kind) == "table" and "link" or kind }
        end
      end
      table.sort(out, function(a, b) return a.name < b.name end)
      return out
    end,
    links = function(dir)
      local names = {}
      for path, kind in pairs(all) do
        local parent, name = path:match("^(.*)/([^/]+)$")
        if parent == dir and type(kind) == "table" then names[#names + 1] = name end
      end
      table.sort(names)
      return names
    end,
    trace = function(path)
      local passed = {}
      look(all, path, passed)
      return passed
    end,
  }
  for key, value in pairs(changes or {}) do spec[key] = value end
  return spec
end

---The mounts of a built plan as "kind path" strings, in order.
function M.mounts(fields)
  local kinds = {
    mask = true, private = true, runtime = true, overlay = true, root = true, pin = true,
    grant = true, socket = true, floor = true,
  }
  local out = {}
  for i = 3, #fields - 1 do
    if kinds[fields[i]] and fields[i + 1]:sub(1, 1) == "/" then
      out[#out + 1] = fields[i] .. " " .. fields[i + 1]
    end
  end
  return out
end

return M
