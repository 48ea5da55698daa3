-- The port of directories with something before each write: a fault, a count, the end. Test help only.
local M = {}

local WRITES <const> = { "create", "symlink", "mkdir", "move", "exchange", "remove", "rmdir",
  "chmod", "chown" }

local function unwrap(value) return type(value) == "table" and value.real or value end

local function wrap(dir, before)
  local self = { real = dir }
  for _, name in ipairs({ "stat", "list", "read", "readlink", "close" }) do
    self[name] = function(_, ...) return dir[name](dir, ...) end
  end
  function self.open(_, path)
    local below, err, code = dir:open(path)
    if not below then return nil, err, code end
    return wrap(below, before)
  end
  for _, name in ipairs(WRITES) do
    self[name] = function(_, ...)
      local args = table.pack(...)
      for i = 1, args.n do args[i] = unwrap(args[i]) end
      local ok, err, code = before(dir, name, args)
      if not ok then return nil, err, code end
      return dir[name](dir, table.unpack(args, 1, args.n))
    end
  end
  return setmetatable(self, { __close = function() dir:close() end })
end

--- A port: before(dir, name, args) -> true, or what the write answers in its place.
function M.port(real, before)
  return { open = function(path)
    local dir, err, code = real.open(path)
    if not dir then return nil, err, code end
    return wrap(dir, before)
  end }
end

--- What a write that ends in its middle leaves: half a file.
function M.half(dir, name, args)
  if name == "create" then dir:create(args[1], args[2]:sub(1, #args[2] // 2), args[3]) end
end

return M
