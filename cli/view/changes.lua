-- Changed files and diffs as rows.
-- Owns: ux.md 6.6 as far as events carry it. Must not know: events, the terminal.
-- Pure; runs in `efr`.

local groups = require "efr.cli.view.groups"
local rows = require "efr.cli.view.rows"

local M = {}

local BAR <const> = { "  │ ", "muted" }
local KIND <const> =
  { added = "new", modified = "changed", deleted = "deleted", renamed = "renamed" }
local ORDER <const> = { "modified", "added", "deleted", "renamed" }

--- The path as a person reads it: `~` for the home directory.
function M.path(path, home)
  if home and home ~= "/" and (path == home or path:sub(1, #home + 1) == home .. "/") then
    path = "~" .. path:sub(#home + 1)
  end
  return rows.safe((path:gsub("\n", "␊")))
end

--- Spans of added and removed line counts; nothing for a zero.
function M.counts(added, removed)
  local spans = {}
  if (added or 0) > 0 then
    spans[#spans + 1] = { (" +%d"):format(added), "success" }
  end
  if (removed or 0) > 0 then
    spans[#spans + 1] = { (" −%d"):format(removed), "error" }
  end
  return spans
end

local function file_spans(file, home)
  local name = M.path(file.path, home)
  if file.kind == "renamed" and file.from then
    name = M.path(file.from, home) .. " → " .. name
  end
  local spans = { { name, "muted" } }
  if file.binary then
    spans[#spans + 1] = { " (binary)", "muted" }
    return spans
  end
  -- A new or deleted file says its whole size; only what remains is counted.
  local removed = file.kind ~= "deleted" and file.removed or 0
  local added = file.kind ~= "deleted" and file.added or 0
  return rows.extend(spans, M.counts(added, removed))
end

local function by_kind(files)
  local out = {}
  for _, kind in ipairs(ORDER) do
    for _, file in ipairs(files) do
      if file.kind == kind then
        out[#out + 1] = file
      end
    end
  end
  return out
end

--- One muted row: the first three files, grouped by kind.
--- @return table? row nil when nothing changed
function M.summary_row(changes, home)
  local files = by_kind(changes and changes.files or {})
  if #files == 0 then
    return nil
  end
  local row, last = { { "  ", "muted" } }, nil
  for i = 1, math.min(3, #files) do
    local file = files[i]
    local lead = file.kind == last and ", " or (last and " · " or "") .. KIND[file.kind] .. " "
    row[#row + 1] = { lead, "muted" }
    rows.extend(row, file_spans(file, home))
    last = file.kind
  end
  local more = #files - 3 + (changes.more or 0)
  if more > 0 then
    row[#row + 1] = { (" (+%d more)"):format(more), "muted" }
  end
  return row
end

--- The totals row at the end of a turn; nil when nothing changed.
--- @param changes table?
--- @param compiled table<string, string[]>? of groups.compile; nil: groups are not told
--- @return table? row
function M.totals_row(changes, compiled)
  local count = changes and #(changes.files or {}) + (changes.more or 0) or 0
  if count == 0 then
    return nil
  end
  local words = ("%d file%s changed"):format(count, count == 1 and "" or "s")
  local row = { { words, "muted" } }
  local counts = M.counts(changes.added, changes.removed)
  if #counts > 0 then
    row[#row + 1] = { ",", "muted" }
    rows.extend(row, counts)
  end
  local words_by_group = compiled and (changes.more or 0) == 0
    and groups.words(changes.files, compiled)
  if words_by_group then
    row[#row + 1] = { (" (%s)"):format(words_by_group), "muted" }
  end
  return row
end

local LINE_ROLE <const> = { ["+"] = "add", ["-"] = "remove", ["@"] = "hunk" }

--- The rows of a whole diff, file headers too.
--- @return table[] rows
function M.whole_rows(diff)
  local in_hunk, out = false, {}
  for line in diff:gmatch("([^\n]*)\n") do
    if line:sub(1, 5) == "diff " then
      in_hunk = false
    end
    in_hunk = in_hunk or line:sub(1, 2) == "@@"
    local role = in_hunk and LINE_ROLE[line:sub(1, 1)] or not in_hunk and "muted" or nil
    out[#out + 1] = { { rows.safe(line), role } }
  end
  return out
end

-- How many old and new lines the hunk of this header holds; nil: no hunk header.
local function hunk_size(line)
  local old, new = line:match("^@@ %-%d+(,?%d*) %+%d+(,?%d*) @@")
  if not old then
    return nil
  end
  return tonumber(old:sub(2)) or 1, tonumber(new:sub(2)) or 1
end

-- The diff's lines from the first hunk without file headers, and how many the daemon cut.
local function hunk_lines(diff)
  local lines, old, new = {}, 0, 0
  for _, line in ipairs(rows.lines(diff)) do
    local cut = line:match("^%.%.%. (%d+) more lines?$")
    if cut then
      return lines, tonumber(cut)
    end
    local first, size, new_size = line:sub(1, 1), hunk_size(line)
    if old <= 0 and new <= 0 and size then
      old, new = size, new_size
      lines[#lines + 1] = line
    elseif old > 0 or new > 0 then
      old = old - ((first == "+" or first == "\\") and 0 or 1)
      new = new - ((first == "-" or first == "\\") and 0 or 1)
      lines[#lines + 1] = line
    end
  end
  return lines, 0
end

-- One diff line after the bar; an over-wide one continues after a muted mark.
local function diff_rows(line, cols, lead)
  local role = LINE_ROLE[line:sub(1, 1)]
  local out = {}
  local rest = rows.safe(line)
  local room = math.max(cols - rows.row_width({ lead }), 8)
  while rows.width(rest) > room do
    local head = rows.head(rest, room - 1)
    out[#out + 1] = { lead, { head, role }, { "↩", "muted" } }
    rest = rest:sub(#head + 1)
  end
  out[#out + 1] = { lead, { rest, role } }
  return out
end

--- Rows of a diff without its file headers.
--- @param opts {cols: integer, limit: integer, lead: table?}
function M.diff_rows(diff, opts)
  local lead = opts.lead or BAR
  local lines, cut = hunk_lines(diff)
  local out = {}
  for i = 1, math.min(#lines, opts.limit) do
    rows.extend(out, diff_rows(lines[i], opts.cols, lead))
  end
  local more = cut + math.max(#lines - opts.limit, 0)
  if more > 0 then
    local words = ("… %d more line%s"):format(more, more == 1 and "" or "s")
    out[#out + 1] = { lead, { words, "muted" } }
  end
  return out
end

return M
