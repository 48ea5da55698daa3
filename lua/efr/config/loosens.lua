-- Owns: which settings let more run without a question than before, and what of such a change may
-- apply while the rest of it has to wait.
-- Must not know: files, who asks, when a change applies.
-- Runs in efrd and efr. Pure.
--
-- Policy: config.md section 6. A change that is not known to be stricter or equal counts as one
-- that loosens where its key stands here.

local list = require "efr.util.list"

local M = {}

local function holds(items, wanted)
  for _, item in ipairs(items or {}) do
    if list.same(item, wanted) then return true end
  end
  return false
end

-- Something of the list is not in the other one.
local function has_more(items, than)
  for _, item in ipairs(items or {}) do
    if not holds(than, item) then return true end
  end
  return false
end

local function added(before, after) return has_more(after, before) end

local function removed(before, after) return has_more(before, after) end

local function differs(before, after) return not list.same(before, after) end

local function becomes(value)
  return function(before, after) return before ~= value and after == value end
end

local function rises(before, after) return (after or math.huge) > (before or math.huge) end

local MODES <const> = { manual = 1, cautious = 2, auto = 3, full = 4 }

local function freer_mode(before, after) return (MODES[after] or 4) > (MODES[before] or 1) end

local function allows(rule) return rule.effect == "allow" end

local function refuses(rule) return rule.effect ~= "allow" end

-- The rules as the file has them, without the number that a waiting change gave them.
local function plain_rules(rules)
  return list.map(rules or {}, function(rule)
    if not rule.number then return rule end
    local out = {}
    for name, value in pairs(rule) do out[name] = value end
    out.number = nil
    return out
  end)
end

-- A new allow rule, or an ask or deny rule that is gone; the last match wins, so another order
-- too.
local function freer_rules(before, after)
  before, after = plain_rules(before), after or {}
  if added(list.filter(before, allows), list.filter(after, allows)) then return true end
  if removed(list.filter(before, refuses), list.filter(after, refuses)) then return true end
  local kept = list.filter(after, function(rule) return holds(before, rule) end)
  return #kept > 0 and not list.same(kept, list.filter(before, function(rule)
    return holds(after, rule)
  end))
end

-- A mask glob that is gone, or one more that keeps names readable.
local function freer_globs(before, after)
  local function keeps(glob) return glob:sub(1, 1) == "!" end
  local function hides(glob) return not keeps(glob) end
  return removed(list.filter(before or {}, hides), list.filter(after or {}, hides))
    or added(list.filter(before or {}, keeps), list.filter(after or {}, keeps))
end

local KEYS <const> = {
  ["permissions.mode"] = freer_mode,
  ["permissions.allow_full"] = becomes(true),
  ["permissions.rules"] = freer_rules,
  ["permissions.secret_paths"] = removed,
  ["shell.sudo_cache"] = becomes "keep",
  ["sandbox.enabled"] = becomes(false),
  ["sandbox.backend"] = differs,
  ["sandbox.bwrap"] = differs,
  ["sandbox.write_projects"] = function(before, after)
    return before ~= after and (after == "all" or before == "turn")
  end,
  ["sandbox.write_roots"] = added,
  ["sandbox.caches"] = added,
  ["sandbox.env_keep"] = added,
  ["sandbox.env_deny"] = removed,
  ["sandbox.promote_env"] = added,
  ["sandbox.export_deny"] = removed,
  ["sandbox.rebuildable"] = added,
  ["sandbox.mask"] = removed,
  ["sandbox.mask_globs"] = freer_globs,
  ["sandbox.protect"] = removed,
  ["sandbox.surface_files"] = removed,
  ["sandbox.synced_dirs"] = removed,
  ["sandbox.ask_destructive"] = becomes "unless_undoable",
  ["sandbox.allow"] = added,
  ["network.mode"] = becomes "proxy",
  ["network.netview"] = becomes(true),
  ["network.allow"] = added,
  ["network.deny"] = removed,
  ["network.hosts"] = added,
  ["network.max_upload_bytes"] = rises,
  ["dbus.proxy"] = becomes(true),
  ["dbus.allow"] = added,
  ["jobs.forward_ports"] = becomes(true),
}

-- What is in force while a change waits: of a list whose new entries loosen, the entries that are
-- still there; of one whose lost entries loosen, those and the new ones.
local WAITING <const> = {
  [added] = function(before, after)
    return list.filter(before or {}, function(item) return holds(after, item) end)
  end,
  [removed] = function(before, after)
    return list.extend(list.copy(before or {}), list.filter(after or {}, function(item)
      return not holds(before, item)
    end))
  end,
}

-- A rule that refuses is stricter wherever it stands last. Its number stays that of the file.
WAITING[freer_rules] = function(before, after)
  local out, known = list.copy(before or {}), plain_rules(before)
  for i, rule in ipairs(after or {}) do
    if rule.effect == "deny" and not holds(known, rule) then
      local copy = { number = i - 1 }
      for name, value in pairs(rule) do copy[name] = value end
      out[#out + 1] = copy
    end
  end
  return out
end

---The value of a setting while a change of it that loosens has to wait: as strict as the one
---before, and with what the change makes stricter where its parts can be told apart.
---@param name string
---@param before any
---@param after any
---@return any
function M.waiting(name, before, after)
  local merge = WAITING[KEYS[name]]
  if not merge then return before end
  return merge(before, after)
end

---Whether a change of one setting loosens.
---@param name string
---@param before any
---@param after any
---@return boolean
function M.key(name, before, after)
  local check = KEYS[name]
  return check ~= nil and check(before, after) == true
end

---The settings of a list that loosen, sorted.
---@param names string[]
---@param before fun(name: string): any
---@param after fun(name: string): any
---@return string[]
function M.names(names, before, after)
  local out = {}
  for _, name in ipairs(names) do
    if M.key(name, before(name), after(name)) then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

return M
