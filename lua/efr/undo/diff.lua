-- Owns: what a turn or a run changed, as a list and as the text of a diff.
-- Must not know: how it is shown. Runs in efrd; waits, in a task.
--
-- Policy: it tells what changed between the first and the last tree of the turn, whoever did it.
-- The content of an ignored file is not shown: it often holds what is no source.

local changes = require "efr.store.snapshot_changes"

local M = {}

local MAX_LINES <const> = 20000

-- Names as git writes them in a diff.
local function quoted(prefix, path)
  if not path:find('[%c"\\\127]') then return prefix .. path end
  return '"' .. prefix .. path:gsub('[%c"\\\127]', function(c)
    if c == '"' or c == "\\" then return "\\" .. c end
    return ("\\%03o"):format(c:byte())
  end) .. '"'
end

local function git_mode(state)
  if state.kind == "link" then return "120000" end
  return state.mode & 64 ~= 0 and "100755" or "100644"
end

local function mode_lines(change, entry)
  local old, new = entry.old, entry.new
  if change.kind == "added" then return "new file mode " .. git_mode(new) .. "\n" end
  if change.kind == "deleted" then return "deleted file mode " .. git_mode(old) .. "\n" end
  if not old or git_mode(old) == git_mode(new) then return "" end
  return ("old mode %s\nnew mode %s\n"):format(git_mode(old), git_mode(new))
end

local function file_text(change, entry, part)
  local from, to = quoted("a/", change.from or change.path), quoted("b/", change.path)
  local out = { ("diff --git %s %s\n"):format(from, to), mode_lines(change, entry) }
  if change.from then
    out[#out + 1] = ("rename from %s\nrename to %s\n"):format(quoted("", change.from),
      quoted("", change.path))
  end
  local old = change.kind == "added" and "/dev/null" or from
  local new = change.kind == "deleted" and "/dev/null" or to
  if change.binary then
    out[#out + 1] = ("Binary files %s and %s differ\n"):format(old, new)
  elseif part ~= "" then
    out[#out + 1] = ("--- %s\n+++ %s\n%s"):format(old, new, part)
  end
  return table.concat(out)
end

-- Paths as they are shown, which their root is put before where it is not the turn's one project.
local function place(list, prefix)
  for _, change in ipairs(list) do
    change.path = prefix .. change.path
    change.from = change.from and prefix .. change.from
  end
end

local function hidden(root, list)
  local paths = {}
  for i, change in ipairs(list) do paths[i] = change.path end
  if #paths == 0 then return {} end
  return root.ignored(paths) or root.store:ignored(paths) or {}
end

local function texts_of(root, span, list, diff)
  local parts, err, code = root.store:patch(span.first, span.last)
  if not parts then return nil, err, code end
  local found, ignored, out = changes.pairs(diff), hidden(root, list), {}
  for i, change in ipairs(list) do
    if change.left_out then
      out[i] = change.path .. ": left out of the snapshot, content not shown\n"
    elseif ignored[change.path] then
      out[i] = change.path .. ": ignored file, content not shown\n"
    else
      change.text = function()
        return file_text(change, found["f" .. change.key], parts[change.at] or "")
      end
      out[i] = change.text
    end
  end
  return out
end

local function of_root(self, span, prefix, with_text)
  local root, err, code = self.snapshots:root(span.root)
  if not root then return nil, err, code end
  local diff
  diff, err, code = root.store:diff(span.first, span.last, { renames = true, counts = true })
  if not diff then return nil, err, code end
  local list, texts = changes.list(diff), {}
  for _, change in ipairs(list) do change.key = change.path end
  if with_text and #list > 0 then
    texts, err, code = texts_of(root, span, list, diff)
    if not texts then return nil, err, code end
  end
  place(list, prefix)
  for i, text in ipairs(texts) do
    texts[i] = type(text) == "function" and text() or prefix .. text
  end
  return list, texts
end

-- The first and the last tree of each root.
local function roots_of(self, turn_id)
  local rows, err, code = self.snapshots:spans(turn_id)
  if not rows then return nil, err, code end
  local by_root, order = {}, {}
  for _, row in ipairs(rows) do
    local known = by_root[row.root]
    if row.tree_before and row.tree_after and not known then
      known = { root = row.root, first = row.tree_before }
      by_root[row.root] = known
      order[#order + 1] = known
    end
    if known and row.tree_after then known.last = row.tree_after end
  end
  return order, #rows > 0
end

local function limited(text)
  local count = select(2, text:gsub("\n", "\n"))
  if count <= MAX_LINES then return text end
  local at = 0
  for _ = 1, MAX_LINES do at = text:find("\n", at + 1, true) end
  return ("%s... %d more lines\n"):format(text:sub(1, at), count - MAX_LINES)
end

---What a turn or a run changed.
---@param self {snapshots: efr.Snapshots, scratch: string}  scratch: above all $SCRATCH directories
---@param turn_id string
---@param with_text boolean
---@return table[]? files  {path, kind, from?, added, removed, binary?}
---@return string? text  or err
---@return string? code  not_found: it has no snapshots
function M.of_turn(self, turn_id, with_text)
  local roots, known, code = roots_of(self, turn_id)
  if not roots then return nil, known, code end
  if #roots == 0 and not known then
    return nil, "this turn has no snapshots", "not_found"
  end
  local projects, files, text = 0, {}, {}
  local function is_scratch(root) return root:sub(1, #self.scratch + 1) == self.scratch .. "/" end
  for _, span in ipairs(roots) do
    if not is_scratch(span.root) then projects = projects + 1 end
  end
  for _, span in ipairs(roots) do
    local relative = projects == 1 and not is_scratch(span.root)
    local list, texts, why = of_root(self, span, relative and "" or span.root .. "/", with_text)
    if not list then return nil, texts, why end
    for i, change in ipairs(list) do
      files[#files + 1] = { path = change.path, kind = change.kind, from = change.from,
        added = change.added, removed = change.removed, binary = change.binary }
      text[#text + 1] = texts[i]
    end
  end
  return files, limited(table.concat(text))
end

return M
