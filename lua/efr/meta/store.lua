---@meta efr.store
-- luacheck: ignore 212 241
-- The C module efr.store: one SQLite database with one writer thread and one reader. Stub for
-- readers and for tests/lint; never loaded by the program. Loop thread of efrd.

local M = {}

---NULL as a parameter. Columns that are NULL are absent from a row.
---@type lightuserdata
M.null = nil

---@alias efr.store.Value string|number|lightuserdata

---One statement of a batch: {sql, params, expect_changes=n}.
---@class efr.store.Statement
---@field [1] string                 exactly one SQL statement
---@field [2] efr.store.Value[]|nil  its parameters, no holes (use store.null)
---@field expect_changes integer|nil  rows that must change; other counts fail the batch

---Rows changed by each statement of a committed batch.
---@class efr.store.Changes
---@field [integer] integer
---@field last_rowid integer|nil  rowid of the last insert

---@class efr.store.Db
local Db = {}

---Opens a database, or makes a new one (mode 0600). A file that is damaged or none is refused
---(EFR_DAMAGED), never replaced.
---@param path string
---@return efr.store.Db? db
---@return string? err
---@return string? code  EFR_DAMAGED, EFR_BUSY, EFR_IO, EFR_FULL or an errno name
function M.open(path) end

---Runs a script of statements in one durable transaction. Only before start.
---@param sql string
---@return true? ok
---@return string? err
---@return string? code
function Db:script(sql) end

---Writes a compact copy (mode 0600) that appears complete or not at all. Blocks.
---@param path string
---@return true? ok
---@return string? err
---@return string? code
function Db:backup(path) end

---Reads the whole file for damage. Blocks.
---@return true? ok
---@return string? err
---@return string? code  EFR_DAMAGED
function Db:check() end

---Starts the writer thread.
---@return true? ok
---@return string? err
---@return string? code
function Db:start() end

---Hands a batch to the writer: all of it is kept or nothing. Batches that wait at the same time
---share one commit. With durable the commit waits for the disk. The callback gets nil, nil,
---changes after the commit, or err, code; results come in the order of the calls. After a nil
---result here (EFR_BUSY: 1024 batches are on their way; EFR_STATE; closed) it is never called.
---Codes: EFR_CONFLICT (expect_changes), EFR_CONSTRAINT, EFR_FULL, EFR_IO, EFR_BUSY (another
---process holds the database), EFR_DAMAGED, EFR_SQL.
---@param statements efr.store.Statement[]
---@param durable boolean
---@param callback fun(err: string?, code: string?, changes: efr.store.Changes?)
---@return true? ok
---@return string? err
---@return string? code
function Db:write(statements, durable, callback) end

---Reads all rows of a query, each keyed by column name. Blocks.
---@param sql string
---@param params efr.store.Value[]|nil
---@return table<string, string|number>[]? rows
---@return string? err
---@return string? code
function Db:read(sql, params) end

---Begins one snapshot for the reads up to end_read. The loop must not turn in between.
---@return true? ok
---@return string? err
---@return string? code
function Db:begin_read() end

---@return true? ok
---@return string? err
---@return string? code
function Db:end_read() end

---Commits and reports what is on its way (the callbacks run inside), then closes the files.
---@return true
function Db:close() end

return M
