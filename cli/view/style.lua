-- Roles to terminal colours: the one place that writes SGR sequences of efr's own text (picture.lua
-- writes those of another terminal's screen).
-- Owns: the palette. Must not know: what a row means. Pure; runs in `efr`.
-- Themes come later; until then every role is one of the terminal's own 16 colours.

local M = {}

-- role -> { attributes that stay without colour, colour }
local ROLES <const> = {
  muted = { "2", nil },
  bold = { "1", nil },
  accent = { nil, "33" },
  code = { nil, "36" },
  success = { nil, "32" },
  warning = { "1", "33" },
  caution = { nil, "33" }, -- the warning colour without bold
  error = { nil, "31" },
  alarm = { "1", "31" }, -- an error that stays visible without colour
  add = { nil, "32" },
  remove = { nil, "31" },
  hunk = { nil, "36" },
}

local Style = {}
Style.__index = Style

--- @param opts {enabled: boolean, colour: boolean} enabled = false writes no sequence at all
function M.new(opts)
  return setmetatable({ enabled = opts.enabled, colour = opts.colour }, Style)
end

--- Paints safe text in a role.
function Style:paint(s, role)
  local def = self.enabled and role and ROLES[role]
  if not def or s == "" then
    return s
  end
  local codes = def[1]
  if self.colour and def[2] then
    codes = codes and (codes .. ";" .. def[2]) or def[2]
  end
  if not codes then
    return s
  end
  return "\27[" .. codes .. "m" .. s .. "\27[0m"
end

--- The bytes of a row, without a line end.
function Style:row(row)
  local parts = {}
  for i, span in ipairs(row) do
    parts[i] = self:paint(span[1], span[2])
  end
  return table.concat(parts)
end

return M
