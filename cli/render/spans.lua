-- Spans of rendered text: what a piece looks like beside its role, slicing, wrapping.
-- Owns: the third field of a span. Must not know: markdown, colours, the terminal. Pure.
-- A span is {text, role?, look?}; look = {bold=, italic=, strike=, underline=, link=}: attributes
-- besides those of the role, and the target of a link. Looks are shared and never changed.

local rows = require "efr.cli.view.rows"
local text = require "efr.text"

local M = {}

--- The look with one more field.
--- @param look table?
--- @param field string
--- @param value any
--- @return table
function M.with(look, field, value)
  local out = {}
  for key, old in pairs(look or {}) do
    out[key] = old
  end
  out[field] = value
  return out
end

--- Appends text to a row; a piece that looks like the one before is joined to it.
function M.add(row, s, role, look)
  if s == "" then
    return
  end
  local last = row[#row]
  if last and last[2] == role and last[3] == look then
    row[#row] = { last[1] .. s, role, look }
  else
    row[#row + 1] = { s, role, look }
  end
end

-- The spans of a row between the bytes {from, to} of each place; the places ascend.
local function slices(row, places)
  local out, i, base = {}, 1, 0
  for n, place in ipairs(places) do
    local now = {}
    while row[i] do
      local s = row[i][1]
      M.add(now, s:sub(math.max(place[1] - base, 1), math.max(place[2] - base, 0)),
        row[i][2], row[i][3])
      if base + #s > place[2] then
        break
      end
      i, base = i + 1, base + #s
    end
    out[n] = now
  end
  return out
end

--- Wraps a row at blanks, as rows.wrap wraps text.
--- @return table[] rows
function M.wrap(row, cols)
  if rows.row_width(row) <= cols then
    return { row }
  end
  local plain, at, places = rows.plain(row), 1, {}
  for _, line in ipairs(rows.wrap(plain, cols)) do
    local from = plain:find(line, at, true) or at
    places[#places + 1] = { from, from + #line - 1 }
    at = from + #line
  end
  return slices(row, places)
end

--- Breaks a row where a terminal of that width would: at the last cluster that fits.
--- @return table[] rows
function M.fold(row, cols)
  local out, now, used = {}, {}, 0
  cols = math.max(cols, 2)
  for _, span in ipairs(row) do
    local s = span[1]
    while used + text.width(s) > cols do
      local head = used < cols and rows.head(s, cols - used) or ""
      if head ~= "" and text.width(head) <= cols - used then
        M.add(now, head, span[2], span[3])
        s = s:sub(#head + 1)
      end
      out[#out + 1], now, used = now, {}, 0
    end
    M.add(now, s, span[2], span[3])
    used = used + text.width(s)
  end
  if #now > 0 or #out == 0 then
    out[#out + 1] = now
  end
  return out
end

return M
