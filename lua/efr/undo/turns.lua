-- Owns: which turns and runs can be undone, and which one is meant.
-- Must not know: plans, the disk. Runs in efrd; nothing here waits.

local M = {}

local CANDIDATES <const> = [[
SELECT s.turn_id, max(s.conversation_id) AS conversation_id, max(s.id) AS last_id,
  min(s.created_at) AS created_at,
  (SELECT u.redo FROM undos u WHERE u.turn_id = s.turn_id AND u.status <> 'open'
    ORDER BY u.created_at DESC, u.id DESC LIMIT 1) AS redo,
  (SELECT u.status FROM undos u WHERE u.turn_id = s.turn_id
    ORDER BY u.created_at DESC, u.id DESC LIMIT 1) AS undo_status,
  (SELECT t.prompt FROM turns t WHERE t.id = s.turn_id) AS prompt,
  (SELECT r.line FROM runs r WHERE r.id = s.turn_id) AS line
FROM (SELECT turn_id, conversation_id, id, created_at FROM snapshot_spans
    WHERE state <> 'uncovered'
  UNION ALL SELECT turn_id, conversation_id, last_id, created_at FROM snapshot_refs) s
GROUP BY s.turn_id ORDER BY last_id DESC LIMIT 1000]]

local function is_within(path, root)
  return path == root or path:sub(1, #root + 1) == root .. "/"
end

---Whether a turn or run touched the place of a directory.
---@param self {app: table}
---@param turn_id string
---@param cwd string?
---@return boolean
function M.touches(self, turn_id, cwd)
  if not cwd then return true end
  for _, list in ipairs({ self.app.snapshots:spans(turn_id) or {},
    self.app.snapshots:moved_refs(turn_id) or {} }) do
    for _, row in ipairs(list) do
      if is_within(cwd, row.root) then return true end
    end
  end
  return false
end

local function title_of(row)
  local text = row.prompt or row.line or ""
  return text:match("[^\n]*%S[^\n]*") or ""
end

---The turns and runs that have snapshots, newest first: those of the conversation, and runs where
---the caller stands. Without a conversation, all that touched the place where the caller stands.
---@param self {app: table}
---@param where {conversation_id: string?, cwd: string?}
---@return table[]? list  {turn_id, conversation_id?, title, created_at, undone}
---@return string? err
---@return string? code
function M.list(self, where)
  local rows, err, code = self.app.db:read(CANDIDATES, {})
  if not rows then return nil, err, code end
  local out = {}
  for _, row in ipairs(rows) do
    local mine = where.conversation_id and row.conversation_id == where.conversation_id
    local may = row.conversation_id == nil or not where.conversation_id
    if mine or may and M.touches(self, row.turn_id, where.cwd) then
      out[#out + 1] = { turn_id = row.turn_id, conversation_id = row.conversation_id,
        title = title_of(row), created_at = row.created_at, undone = row.redo == 0,
        stopped = row.undo_status == "stopped" or row.undo_status == "open" }
    end
  end
  return out
end

---The turn that is meant; no other above it may be left, unless forced.
---@param self {app: table}
---@param where table  with turn_id, force
---@return table?
---@return string? err
---@return string? code
function M.find(self, where)
  local list, err, code = M.list(self, where)
  if not list then return nil, err, code end
  local above = false
  for _, item in ipairs(list) do
    local meant = not where.turn_id and not item.undone or item.turn_id == where.turn_id
    if meant then
      if item.undone then return nil, "this turn is undone already", "conflict" end
      if above and not where.force then
        return nil, "a newer turn is not undone; undo that first, or give --force", "conflict"
      end
      return item
    end
    above = above or not item.undone
  end
  local what = where.turn_id and "no such turn has snapshots here" or "there is nothing to undo"
  return nil, what, "not_found"
end

return M
