-- Owns: what an `efr run --dry` would change, as an undo that was carried out already: to keep it
-- is to take that undo back, by the same code and with the same checks as every redo.
-- Must not know: how the command ran. Runs in efrd; everything waits, in a task.
--
-- Policy: until its changes are kept, a dry run's rows say `uncovered`, so that no undo offers it.

local journal = require "efr.undo.journal"
local plan = require "efr.undo.plan"

local M = {}

local KEEP <const> = "UPDATE snapshot_spans SET state = 'done', note = NULL WHERE turn_id = ?"

local function read(store, tree)
  local listing, err, code = store:list(tree)
  return listing and plan.read(listing), err, code
end

---The entries of one root, as if an undo had carried them out.
---@param root efr.SnapshotRoot
---@param before string  tree
---@param after string  tree
---@return efr.UndoEntry[]?
---@return string? err
---@return string? code
function M.entries(root, before, after)
  local diff, err, code = root.store:diff(before, after, { all = true })
  if not diff then return nil, err, code end
  local trees = {}
  trees.before, err, code = read(root.store, before)
  if trees.before then trees.after, err, code = read(root.store, after) end
  if not trees.after then return nil, err, code end
  trees.now = trees.after
  local rows = plan.rows(root.path, { { diff = diff } }, trees, false)
  for _, row in ipairs(rows) do
    if row.action == "restore" or row.action == "trash" then row.result = "done" end
  end
  rows[#rows + 1] = { root = root.path, path = "", is_dir = true, action = "keep", tree = after }
  return rows
end

---Keeps what a dry run changed. What is no longer as it was before the run stays as it is. When it
---cannot be written now, `efr undo --redo` does it later.
---@param app table
---@param run_id string
---@param entries efr.UndoEntry[]
---@return table? done  as of Undo:apply
---@return string? err
---@return string? code
function M.keep(app, run_id, entries)
  local ok, err, code = app.snapshots:write({
    { KEEP, { run_id } },
    journal.row(app, { id = app.ports.sys.uuid7(), turn_id = run_id, redo = 0,
      entries = entries }, "done"),
  }, true)
  if not ok then return nil, err, code end
  return app.undo:apply { turn_id = run_id, redo = true }
end

return M
