-- The colours of efr's own text: names to SGR parameters, by the settings and the terminal.
-- Owns: the default colours, the themes of code, how a colour is said where there are fewer.
-- Must not know: roles, rows. Pure. Sources: ECMA-48 (SGR), no-color.org.

local colour = require "efr.config.colour"

local M = {}

local DEFAULTS <const> = {
  accent = 3, link = 4, code = 6, success = 2, warning = 3, error = 1, ["diff.add"] = 2,
  ["diff.remove"] = 1, ["diff.hunk"] = 6,
}

-- The colours of tokens. ansi: the terminal's own.
local THEMES <const> = {
  ansi = { string = 2, keyword = 5, number = 6, type = 3, ["function"] = 4 },
  ["catppuccin-mocha"] = {
    comment = "#9399b2", string = "#a6e3a1", keyword = "#cba6f7", number = "#fab387",
    type = "#f9e2af", ["function"] = "#89b4fa",
  },
  ["catppuccin-latte"] = {
    comment = "#7c7f93", string = "#40a02b", keyword = "#8839ef", number = "#fe640b",
    type = "#df8e1d", ["function"] = "#1e66f5",
  },
  ["gruvbox-dark"] = {
    comment = "#928374", string = "#b8bb26", keyword = "#fb4934", number = "#d3869b",
    type = "#fabd2f", ["function"] = "#83a598",
  },
  ["gruvbox-light"] = {
    comment = "#928374", string = "#79740e", keyword = "#9d0006", number = "#8f3f71",
    type = "#b57614", ["function"] = "#076678",
  },
  nord = {
    comment = "#616e88", string = "#a3be8c", keyword = "#81a1c1", number = "#b48ead",
    type = "#8fbcbb", ["function"] = "#88c0d0",
  },
}

-- Greys: the brightest channel below which a slot is taken.
local GREYS <const> = { { 64, 0 }, { 144, 8 }, { 208, 7 }, { 256, 15 } }

-- The slot nearest to a colour. The hue is kept: only greyish colours become grey.
local function nearest(r, g, b)
  local high, low = math.max(r, g, b), math.min(r, g, b)
  if high - low < 32 then
    for _, grey in ipairs(GREYS) do
      if high < grey[1] then
        return grey[2]
      end
    end
  end
  local middle = (high + low) / 2
  local slot = (r > middle and 1 or 0) + (g > middle and 2 or 0) + (b > middle and 4 or 0)
  return high > 208 and slot + 8 or slot
end

--- The SGR parameters of a colour.
--- @param value string|integer  as efr.config.colour reads it
--- @param rgb boolean  the terminal has 24-bit colours
--- @return string?  nil: this is no colour
function M.sgr(value, rgb)
  local found = colour.parse(value)
  if not found then
    return nil
  elseif found.rgb and rgb then
    return ("38;2;%d;%d;%d"):format(table.unpack(found.rgb))
  end
  local slot = found.slot or nearest(table.unpack(found.rgb))
  return tostring(slot < 8 and 30 + slot or 82 + slot)
end

local function theme_of(settings, environ)
  local name = settings.theme
  if name == "auto" then
    local light = (environ.EFR_TERMINAL_BG or ""):lower() == "light"
    name = light and settings.theme_light or settings.theme_dark
  end
  return THEMES[name] or THEMES.ansi
end

--- The SGR parameters by the names that cli/view/style.lua knows.
--- @param settings {theme: string?, theme_dark: string?, theme_light: string?,
---   colors: table<string, string>?}  checked values of [render]
--- @param environ table<string, string>
--- @return table<string, string>
function M.colours(settings, environ)
  local depth = (environ.COLORTERM or ""):lower()
  local rgb = depth == "truecolor" or depth == "24bit"
  local values, out = {}, {}
  for name, value in pairs(DEFAULTS) do
    values[name] = value
  end
  for token, value in pairs(theme_of(settings, environ)) do
    values["code." .. token] = value
  end
  for name, value in pairs(settings.colors or {}) do
    values[name] = value
  end
  values.heading = values.heading or values.accent
  for name, value in pairs(values) do
    out[name] = M.sgr(value, rgb)
  end
  return out
end

return M
