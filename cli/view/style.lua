-- Roles to terminal colours: the one place that writes SGR sequences of efr's own text (picture.lua
-- writes those of another terminal's screen), and the hyperlinks of a span.
-- Owns: ux.md 7.1. Must not know: what a row means, where settings come from. Pure; runs in `efr`.

local M = {}

-- role -> attributes, the name of a colour, attributes in its place where there are no colours
local ROLES <const> = {
  text = { nil, "text" },
  muted = { nil, "muted" },
  bold = { "1", "text" },
  accent = { nil, "accent", "1" },
  heading = { nil, "heading", "1" },
  link = { "4", "link" },
  code = { nil, "code" },
  quote = { "3", "quote" },
  success = { nil, "success" },
  warning = { "1", "warning" },
  caution = { nil, "warning" }, -- the warning colour without bold
  error = { nil, "error", "1" },
  alarm = { "1", "error" }, -- an error that stays visible without colour
  add = { nil, "diff.add" },
  remove = { nil, "diff.remove" },
  hunk = { nil, "diff.hunk" },
  ["code.comment"] = { nil, "code.comment" },
  ["code.string"] = { nil, "code.string" },
  ["code.keyword"] = { nil, "code.keyword" },
  ["code.number"] = { nil, "code.number" },
  ["code.type"] = { nil, "code.type" },
  ["code.function"] = { nil, "code.function" },
}

local LOOKS <const> = {
  { "bold", "1" }, { "italic", "3" }, { "underline", "4" }, { "strike", "9" },
}
local MUTED <const> = { muted = true, ["code.comment"] = true }

local Style = {}
Style.__index = Style

--- @class efr.cli.style_options
--- @field enabled boolean false writes no sequence at all
--- @field colour boolean
--- @field colours table<string, string>? SGR parameters by the name of a colour; see render.palette
--- @field hyperlinks boolean? links are written as such

--- @param opts efr.cli.style_options
function M.new(opts)
  return setmetatable({
    enabled = opts.enabled, colour = opts.enabled and opts.colour, colours = opts.colours or {},
    hyperlinks = opts.enabled and opts.hyperlinks or false,
  }, Style)
end

-- The SGR parameter of a role's colour; with none of its own, that of prose, but for muted text,
-- which is dim.
function Style:_colour(role, def)
  local colour = self.colour and self.colours[def[2]]
  if colour then
    return colour
  elseif MUTED[role] then
    return "2"
  end
  return self.colour and self.colours.text or nil
end

-- The SGR parameters of a role and a look, "" for none.
function Style:_codes(role, look)
  local def = ROLES[role] or ROLES.text
  local instead = not self.colour and def[3] or nil
  local codes = { def[1] }
  codes[#codes + 1] = instead
  codes[#codes + 1] = self:_colour(role, def)
  for _, item in ipairs(look and LOOKS or {}) do
    if look[item[1]] and item[2] ~= def[1] and item[2] ~= instead then
      codes[#codes + 1] = item[2]
    end
  end
  return table.concat(codes, ";")
end

--- Paints safe text in a role.
--- @param s string
--- @param role string?
--- @param look table? of render.spans
function Style:paint(s, role, look)
  if not self.enabled or s == "" then
    return s
  end
  local codes = self:_codes(role, look)
  if codes ~= "" then
    s = "\27[" .. codes .. "m" .. s .. "\27[0m"
  end
  if look and look.link and self.hyperlinks then
    s = "\27]8;;" .. look.link .. "\27\\" .. s .. "\27]8;;\27\\"
  end
  return s
end

--- The bytes of a row, without a line end.
function Style:row(row)
  local parts = {}
  for i, span in ipairs(row) do
    parts[i] = self:paint(span[1], span[2], span[3])
  end
  return table.concat(parts)
end

return M
