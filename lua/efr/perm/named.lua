-- Owns: whether the user's own words name a path or a host.
-- Must not know: where the words come from, what follows from a name.
-- Runs in efrd and efr. Pure.
--
-- Policy: permissions.md 14. A path is named by its absolute form, its ~ form, or its last two
-- parts, always by whole parts. A floor file answers to its plain name too (`my zshrc`, `the
-- hyprland config`), a unit to `backup.service` and `the backup unit`; programs on PATH, desktop
-- entries and settings of agents do not. A host is named by all of it.

local M = {}

local BEFORE <const> = "[%w_%-%./~]" -- a name does not begin behind one of these
local AFTER <const> = "^[%w_%-/]"

-- Whether a text has the words with nothing of a longer name around them.
local function has(text, words)
  local from = 1
  while true do
    local at, stop = text:find(words, from, true)
    if not at then return false end
    local rest = text:sub(stop + 1):gsub("^/+", "", 1)
    local ends = not rest:find(AFTER) and not rest:find("^%.[%w_%-]")
    if ends and (at == 1 or not text:sub(at - 1, at - 1):find(BEFORE)) then return true end
    from = at + 1
  end
end

local function has_any(text, forms)
  for _, form in ipairs(forms) do
    if has(text, form) then return true end
  end
  return false
end

-- A path's forms by which any path answers.
local function forms_of(path, home)
  local out = { path }
  if home ~= "/" and path:sub(1, #home + 1) == home .. "/" then
    out[2] = "~" .. path:sub(#home + 1)
  end
  local two = path:match("^.+/([^/]+/[^/]+)$")
  if two and path:match("^(.+)/[^/]+/[^/]+$") ~= home:match("^(.*)/[^/]*$") then
    out[#out + 1] = two
  end
  return out
end

local UNIT <const> = "^(.+)%.(%l+)$"
local UNITS <const> = {
  service = true, timer = true, socket = true, path = true, target = true, mount = true,
}
local PLAIN <const> = { startup = true, autostart = true, tool = true, dotfile = true }

-- The plain names of a floor file.
local function plain_of(path, group)
  local name = path:match("[^/]*$")
  local stem, suffix = name:match(UNIT)
  if stem and UNITS[suffix] then return { name, stem .. " unit", stem .. " " .. suffix } end
  if suffix == "desktop" or not PLAIN[group] then return {} end
  local bare = name:gsub("^%.", "")
  stem = bare:match("^(.+)%.[^.]+$")
  if not stem then return { bare } end
  return { bare, stem .. " config", stem .. " conf", stem .. " settings" }
end

---Whether the words name a path.
---@param words string  of the user
---@param path string  absolute
---@param about { home: string, floor: string?, links: string[]? }  floor: its group; links: other
---  names that lead to it
---@return boolean
function M.path(words, path, about)
  local low = words:lower()
  for _, one in ipairs({ path, table.unpack(about.links or {}) }) do
    if has_any(words, forms_of(one, about.home)) then return true end
    local plain = about.floor and plain_of(one, about.floor) or {}
    for i, name in ipairs(plain) do plain[i] = name:lower() end
    if has_any(low, plain) then return true end
  end
  return false
end

---Whether the words name a host.
---@param words string
---@param host string  in lower case
---@return boolean
function M.host(words, host)
  local low, from = words:lower(), 1
  while true do
    local at, stop = low:find(host, from, true)
    if not at then return false end
    local before = at > 1 and low:sub(at - 1, at - 1) or " "
    local rest = low:sub(stop + 1)
    local ends = not rest:find("^[%w_%-]") and not rest:find("^%.[%w]")
    if ends and not before:find("[%w_%-%.]") then return true end
    from = at + 1
  end
end

return M
