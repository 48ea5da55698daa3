-- No program names libcurl, libssl or libcrypto as needed (efrd loads them at the first request),
-- the C-only programs need no Lua, and no program holds a path of the build.
local lib = dofile((os.getenv("EFR_SOURCE") or ".") .. "/tests/lint/lib.lua")

local build = os.getenv("EFR_BUILD") or "build"
local PROGRAMS <const> = { "efr", "efrd", "efr-sbx", "efr-worker" }
local NEVER <const> = { "libcurl", "libssl", "libcrypto" }
local ONLY <const> = {
  ["efr-sbx"] = { "libc.", "libseccomp.", "ld-linux" },
  ["efr-worker"] = { "libc.", "libseccomp.", "libvterm.", "ld-linux" },
}

local function starts_with_one(name, list)
  for _, start in ipairs(list) do
    if name:sub(1, #start) == start then
      return true
    end
  end
  return false
end

for _, program in ipairs(PROGRAMS) do
  local path = build .. "/bin/" .. program
  local file = io.open(path, "rb")
  if file then
    local bytes = file:read("a")
    file:close()
    for _, line in ipairs(lib.lines("readelf -d '" .. path .. "'")) do
      local name = line:match("%(NEEDED%).-%[(.-)%]")
      if name and starts_with_one(name, NEVER) then
        lib.report(path, nil, "needs " .. name)
      elseif name and ONLY[program] and not starts_with_one(name, ONLY[program]) then
        lib.report(path, nil, "needs " .. name)
      end
    end
    if lib.root ~= "." and bytes:find(lib.root .. "/", 1, true) then
      lib.report(path, nil, "holds the path of the source tree")
    end
  else
    lib.report(path, nil, "was not built")
  end
end

lib.finish("needed")
