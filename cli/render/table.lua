-- A table of markdown as rows: aligned columns, or records where it does not fit.
-- Owns: the widths. Must not know: markdown's syntax, colours. Pure.

local rows = require "efr.cli.view.rows"
local spans = require "efr.cli.render.spans"

local M = {}

local function with_bold(row)
  local out = {}
  for i, span in ipairs(row) do
    out[i] = { span[1], span[2], spans.with(span[3], "bold", true) }
  end
  return out
end

local function append(row, more)
  return table.move(more, 1, #more, #row + 1, row)
end

-- A cell in its column.
local function put(out, cell, width, align, is_last)
  local room = width - rows.row_width(cell)
  local left = align == "right" and room or align == "center" and room // 2 or 0
  if left > 0 then
    spans.add(out, (" "):rep(left))
  end
  append(out, cell)
  if not is_last and room > left then
    spans.add(out, (" "):rep(room - left))
  end
end

local function grid(header, body, aligns, widths)
  local out = {}
  local function line(cells)
    local row = {}
    for i = 1, #aligns do
      put(row, cells[i] or {}, widths[i], aligns[i], i == #aligns)
      if i < #aligns then
        row[#row + 1] = { " │ ", "muted" }
      end
    end
    out[#out + 1] = row
  end
  line(header)
  local rule = {}
  for i = 1, #aligns do
    rule[i] = ("─"):rep(widths[i] + (i > 1 and i < #aligns and 2 or 1))
  end
  if #aligns == 1 then
    rule[1] = ("─"):rep(widths[1])
  end
  out[#out + 1] = { { table.concat(rule, "┼"), "muted" } }
  for _, cells in ipairs(body) do
    line(cells)
  end
  return out
end

local function records(header, body, cols)
  local out = {}
  for n, cells in ipairs(body) do
    if n > 1 then
      out[#out + 1] = {}
    end
    for i, name in ipairs(header) do
      local row = {}
      append(row, name)
      spans.add(row, #name > 0 and ": " or "")
      append(row, cells[i] or {})
      append(out, spans.wrap(row, cols))
    end
  end
  return out
end

--- @param header table[]  a row of spans for each cell
--- @param body table[][]  the lines of the table
--- @param aligns string[]  "left", "right" or "center"; how many columns there are
--- @param cols integer
--- @return table[] rows
function M.rows(header, body, aligns, cols)
  local widths, total, bold = {}, 3 * (#aligns - 1), {}
  for i = 1, #aligns do
    bold[i] = with_bold(header[i] or {})
    widths[i] = rows.row_width(bold[i])
    for _, cells in ipairs(body) do
      widths[i] = math.max(widths[i], rows.row_width(cells[i] or {}))
    end
    total = total + widths[i]
  end
  if total > cols and #body > 0 then
    return records(bold, body, cols)
  end
  return grid(bold, body, aligns, widths)
end

return M
