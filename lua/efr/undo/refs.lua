-- Owns: the references of repositories in an undo: the rows, moving them, taking that back.
-- Must not know: files, how a reference is moved (store.snapshot_refs). Runs in efrd; waits.
--
-- Policy: a reference that is not where the turn left it stays, unless forced. It moves only after
-- what its present place alone reaches was kept, so that a redo always can.

local M = {}

local function row_of(root, name, from, to, why)
  local row = { root = root, path = name, ref = true, from = from, to = to, action = "ref" }
  if why then row.action, row.reason, row.forceable = "skip", why, true end
  return row
end

-- The rows of one repository: each {name, expected, wanted}.
local function add(app, out, root, list, opts)
  local refs = app.snapshots:refs(root)
  local now = refs and refs:read()
  for _, item in ipairs(list) do
    if not now then
      out[#out + 1] = { root = root, path = item.name, ref = true, action = "not_covered",
        reason = "its repository cannot be read" }
    elseif now[item.name] ~= item.wanted then
      local why = now[item.name] ~= item.expected and "moved since"
        or opts.shared and "another call ran at the same time" or nil
      out[#out + 1] = row_of(root, item.name, now[item.name], item.wanted,
        not opts.force and why or nil)
      out[#out].kept = opts.kept
    end
  end
end

---Adds the rows of an undo.
---@param app table
---@param out efr.UndoEntry[]
---@param moved {root: string, moved: table[], shared: boolean, turn_id: string}[]
---@param force boolean?
---@return efr.UndoEntry[]
function M.add_rows(app, out, moved, force)
  for _, row in ipairs(moved) do
    local list = {}
    for i, item in ipairs(row.moved) do
      list[i] = { name = item.name, expected = item.after, wanted = item.before }
    end
    add(app, out, row.root, list, { shared = row.shared, force = force, kept = row.turn_id })
  end
  return out
end

---Adds the rows that take an undo back.
---@param app table
---@param out efr.UndoEntry[]
---@param done efr.UndoEntry[]  of the undo
---@param undo_id string
---@param force boolean?
---@return efr.UndoEntry[]
function M.add_reverse(app, out, done, undo_id, force)
  for _, entry in ipairs(done) do
    add(app, out, entry.root,
      { { name = entry.path, expected = entry.to, wanted = entry.from } },
      { force = force, kept = undo_id })
  end
  return out
end

local function by_root(entries)
  local out, order = {}, {}
  for _, entry in ipairs(entries) do
    if entry.action == "ref" then
      if not out[entry.root] then
        out[entry.root] = {}
        order[#order + 1] = entry.root
      end
      table.insert(out[entry.root], entry)
    end
  end
  return out, order
end

-- References that come or move, then HEAD, then those that go: HEAD never names what is gone.
local function in_order(list)
  table.sort(list, function(a, b)
    local one = a.to == nil and 2 or a.path == "HEAD" and 1 or 0
    local other = b.to == nil and 2 or b.path == "HEAD" and 1 or 0
    if one ~= other then return one < other end
    return a.path < b.path
  end)
  return list
end

-- What can be brought back at all, and what all references are afterwards.
local function ready(refs, list, now)
  local out, after = {}, {}
  for name, place in pairs(now) do after[name] = place end
  for _, entry in ipairs(list) do
    local ok, err = refs:ensure(entry.to, entry.kept)
    if now[entry.path] == entry.to then
      entry.result = "done"
    elseif ok then
      out[#out + 1] = entry
      after[entry.path] = entry.to
    else
      entry.result, entry.reason = "skip", err
    end
  end
  return out, after
end

local function move_all(refs, undo, list, now)
  local entries, after = ready(refs, list, now)
  local moved = {}
  for i, entry in ipairs(entries) do moved[i] = { before = entry.from } end
  local ok, err = refs:keep(undo.id, moved, "before", after)
  for _, entry in ipairs(in_order(entries)) do
    local done, why = nil, err
    if ok then done, why = refs:move(entry.path, entry.from, entry.to) end
    entry.result, entry.reason = done and "done" or "skip", why
  end
end

---Moves the references of an undo. One that cannot move stays, and its row says why.
---@param app table
---@param undo {id: string, entries: efr.UndoEntry[]}
---@return true
function M.carry_out(app, undo)
  local lists, order = by_root(undo.entries)
  for _, root in ipairs(order) do
    local refs = app.snapshots:refs(root)
    local now = refs and refs:read()
    if now then
      move_all(refs, undo, lists[root], now)
    else
      for _, entry in ipairs(lists[root]) do
        entry.result, entry.reason = "skip", "its repository cannot be read"
      end
    end
  end
  return true
end

return M
