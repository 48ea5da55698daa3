-- Owns: the git commands of one snapshot store, and reading their answers.
-- Must not know: what a snapshot is for, how git is run (a port: efr.sbx.git).
-- Runs in efrd; everything waits, in a task.
--
-- Policy: the store is bare and efr's own; git runs in a domain that reads the root and writes this
-- store alone. Content goes in as the bytes on disk: no attribute, filter or end of line counts. A
-- tree is the one before it with some names changed; content and trees come in one stream, and lie
-- in one pack when they are many.

local async = require "efr.util.async"

local M = {}

local EMPTY_BLOB <const> = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
local NOTHING <const> = ("0"):rep(40)
local EMPTY_MARK <const> = 1 -- of the blob without bytes; content begins after it
local ATTRIBUTES <const> = "* -text -ident !filter !working-tree-encoding !eol\n"
local CONFIG <const> = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
  .. "\tprotectNTFS = false\n\tprotectHFS = false\n\tlooseCompression = 1\n"
  .. "\tlogAllRefUpdates = false\n[gc]\n\tauto = 0\n"
local RUN_MS <const> = 120000
local BYTES_PER_MS <const> = 4096 -- what a slow disk and a busy processor still take
local MAX_RUN_MS <const> = 3600000
local WRITE_BYTES <const> = 64 * 1024
local BLOBS_BYTES <const> = 64 * 1024 * 1024
local MAX_LIST_BYTES <const> = 256 * 1024 * 1024
local MAX_DIFF_BYTES <const> = 16 * 1024 * 1024

---The tree without entries.
M.EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

---@class efr.SnapshotGit
local Store = {}
Store.__index = Store

---@param deps {git: table, fs: table, uv: table, root: string, dir: string}  dir: real path of the
---store
---@return efr.SnapshotGit
function M.new(deps)
  return setmetatable({ git = deps.git, fs = deps.fs, uv = deps.uv, root = deps.root,
    dir = deps.dir }, Store)
end

-- Without a sync: after a crash of the machine it is written again.
local function write_plain(self, path, bytes)
  local fd, err, code = self.uv.fs_open(path, "w", 384)
  if not fd then return nil, err, code end
  local written
  written, err, code = self.uv.fs_write(fd, bytes)
  self.uv.fs_close(fd)
  if written ~= #bytes then return nil, err or "short write of " .. path, code or "EIO" end
  return true
end

local function name_of(args)
  local at = 1
  while args[at] == "-c" do at = at + 2 end
  return args[at]
end

-- Runs one command. A status other than 0 is a failure, but for those that the caller takes.
local function run(self, args, opts)
  opts = opts or {}
  local found, err, code = self.git:run {
    root = self.root, store = self.dir, args = args, stdin = opts.stdin, source = opts.source,
    env = { GIT_DIR = self.dir, GIT_WORK_TREE = opts.work_tree },
    timeout_ms = opts.timeout_ms or RUN_MS, max_bytes = opts.max_bytes,
  }
  if not found then return nil, ("git %s: %s"):format(name_of(args), err), code end
  if found.code ~= 0 and not (opts.take and opts.take[found.code]) then
    local words = found.err:match("[^\n]+") or ("status %d"):format(found.code)
    return nil, ("git %s: %s"):format(name_of(args), words), "EFR_GIT_FAILED", found
  end
  return found.out, nil, nil, found
end

---Makes the store when it is not there. What lies there is checked by git itself.
---@return true?
---@return string? err
---@return string? code
function Store:init()
  local fs, dir = self.fs, self.dir
  local ok, err, code
  for _, name in ipairs({ "", "/objects", "/refs", "/info", "/tmp" }) do
    ok, err, code = fs.mkdirs_real(dir .. name, 448)
    if not ok then return nil, err, code end
  end
  self:sweep()
  for path, bytes in pairs({ ["/config"] = CONFIG, ["/info/attributes"] = ATTRIBUTES,
    ["/HEAD"] = "ref: refs/heads/none\n" }) do
    if fs.read_real(dir .. path, 4096) ~= bytes then
      ok, err, code = write_plain(self, dir .. path, bytes)
      if not ok then return nil, err, code end
    end
  end
  return true
end

---Removes what a git that was killed, or that found no room, left in the store. Nothing else may
---run in it.
function Store:sweep()
  local fs = self.fs
  for dir, pattern in pairs({ [self.dir] = "^fast_import_crash_",
    [self.dir .. "/objects/pack"] = "^tmp_" }) do
    for _, entry in ipairs(fs.readdir(dir) or {}) do
      if entry.name:find(pattern) then fs.unlink(dir .. "/" .. entry.name) end
    end
  end
end

-- Content -----------------------------------------------------------------------------------------

-- As git reads a path in a list of lines.
local function quote(path)
  return '"' .. path:gsub('[%c"\\\127-\255]', function(c)
    return ("\\%03o"):format(c:byte())
  end) .. '"'
end

-- Trees -------------------------------------------------------------------------------------------

---@class efr.SnapshotLine
---@field name string  as in a tree
---@field mode string?  nil: remove it
---@field mark integer?  of its content; nil: it has none

---@class efr.SnapshotImport
---@field base string  the tree that is changed
---@field bytes integer  about how much content there is
---@field content fun(fd: integer, first_mark: integer): efr.SnapshotLine[]?, string?, string?
---writes the content from this mark on, and says what changes

-- Writes a text to a pipe, in another thread.
local function write_all(uv, fd, text)
  while text ~= "" do
    local err, count = async.await(function(resume) assert(uv.fs_write(fd, text, -1, resume)) end)
    if err then return nil, "write to git: " .. err, err:match("^%u+") end
    text = text:sub(count + 1)
  end
  return true
end

local function head_of(base)
  local head = "commit refs/efr-import\ncommitter efr <efr@localhost> 0 +0000\ndata 0\n"
  return base == M.EMPTY_TREE and head or ('%sM 040000 %s ""\n'):format(head, base)
end

-- Names go before names come: a file can take the place of a directory. The tree is asked for, and
-- the reference is forgotten: rows and the collector keep trees.
local function write_lines(uv, fd, base, lines)
  local buffer, size = { head_of(base) }, 0
  local function put(text)
    buffer[#buffer + 1], size = text, size + #text
    if size < WRITE_BYTES then return true end
    local all = table.concat(buffer)
    buffer, size = {}, 0
    return write_all(uv, fd, all)
  end
  for _, is_gone in ipairs({ true, false }) do
    for _, line in ipairs(lines) do
      local ok, err, code = true, nil, nil
      if is_gone and not line.mode then
        ok, err, code = put(("D %s\n"):format(quote(line.name)))
      elseif line.mode and not is_gone then
        ok, err, code = put(("M %s :%d %s\n"):format(line.mode, line.mark or EMPTY_MARK,
          quote(line.name)))
      end
      if not ok then return nil, err, code end
    end
  end
  buffer[#buffer + 1] = ('ls ""\nreset refs/efr-import\nfrom %s\n\ndone\n'):format(NOTHING)
  return write_all(uv, fd, table.concat(buffer))
end

---Writes content and the tree that it makes.
---@param what efr.SnapshotImport
---@return string? tree
---@return string? err
---@return string? code
function Store:import(what)
  local uv = self.uv
  local function source(fd)
    local ok, err, code = write_all(uv, fd, ("blob\nmark :%d\ndata 0\n"):format(EMPTY_MARK))
    if not ok then return nil, err, code end
    local lines
    lines, err, code = what.content(fd, EMPTY_MARK + 1)
    if not lines then return nil, err, code end
    return write_lines(uv, fd, what.base, lines)
  end
  local out, err, code = run(self, {
    "-c", "core.bigFileThreshold=16m", "-c", "pack.compression=1", "fast-import", "--quiet",
    "--done", "--depth=0",
  }, { source = source, timeout_ms = math.min(RUN_MS + what.bytes // BYTES_PER_MS, MAX_RUN_MS) })
  if not out then
    self:sweep()
    return nil, err, code
  end
  local tree = out:match("^040000 tree (%x+)\t\n$")
  if tree then return tree end
  if out == "missing \n" then return M.EMPTY_TREE end
  return nil, "git fast-import said nothing", "EFR_GIT_FAILED"
end

---@class efr.SnapshotDiff
---@field status string  A, M, D, R or T
---@field old_mode string
---@field new_mode string
---@field old_oid string
---@field new_oid string
---@field name string  the old one of a rename
---@field new_name string?  of a rename

local function parse_raw(text)
  local out, at = {}, 1
  local HEAD <const> = "^:(%d+) (%d+) (%x+) (%x+) (%u)%d*%z([^%z]+)%z()"
  while at <= #text and text:sub(at, at) == ":" do
    local old_mode, new_mode, old_oid, new_oid, status, name, next_at = text:match(HEAD, at)
    if not old_mode then return nil end
    local item = { status = status, old_mode = old_mode, new_mode = new_mode, old_oid = old_oid,
      new_oid = new_oid, name = name }
    if status == "R" or status == "C" then
      item.new_name, next_at = text:match("^([^%z]+)%z()", next_at)
      if not next_at then return nil end
    end
    out[#out + 1], at = item, next_at
  end
  return out, at
end

-- Numbers of lines per entry, in the order of the entries; false: binary.
local function parse_counts(text, at, list)
  for _, item in ipairs(list) do
    local added, removed, next_at
    if item.new_name then
      added, removed, next_at = text:match("^([%d-]+)\t([%d-]+)\t%z[^%z]+%z[^%z]+%z()", at)
    else
      added, removed, next_at = text:match("^([%d-]+)\t([%d-]+)\t[^%z]+%z()", at)
    end
    if not next_at then return nil end
    item.added, item.removed = tonumber(added) or false, tonumber(removed) or false
    at = next_at
  end
  return true
end

---What differs between two trees.
---@param old string
---@param new string
---@param opts {renames: boolean?, counts: boolean?, all: boolean?}?  all: of any length
---@return efr.SnapshotDiff[]?
---@return string? err
---@return string? code
function Store:diff(old, new, opts)
  opts = opts or {}
  if old == new then return {} end
  local args = { "diff-tree", "-r", "-z", "--no-ext-diff", "--no-textconv", "--raw", "--no-abbrev" }
  args[#args + 1] = opts.renames and "-M" or "--no-renames"
  if opts.counts then args[#args + 1] = "--numstat" end
  args[#args + 1], args[#args + 2] = old, new
  local text, err, code = run(self, args,
    { max_bytes = opts.all and MAX_LIST_BYTES or MAX_DIFF_BYTES })
  if not text then return nil, err, code end
  local list, at = parse_raw(text)
  if not list or opts.counts and not parse_counts(text, at, list) then
    return nil, "git diff-tree said something that efr cannot read", "EFR_GIT_FAILED"
  end
  return list
end

---The text of the differences, one part per entry of diff{renames=true}, in its order.
---@param old string
---@param new string
---@return string[]? parts  from the first hunk on; "" without one
---@return string? err
---@return string? code
function Store:patch(old, new)
  local text, err, code = run(self, { "diff-tree", "-r", "-p", "-M", "--no-ext-diff",
    "--no-textconv", "--no-color", "--full-index", old, new }, { max_bytes = MAX_DIFF_BYTES })
  if not text then return nil, err, code end
  local parts, lines = {}, nil
  for line in text:gmatch("[^\n]*\n?") do
    if line:sub(1, 11) == "diff --git " then
      lines = {}
      parts[#parts + 1] = lines
    elseif lines and line ~= "" then
      local is_hunk = line:sub(1, 3) == "@@ "
      if lines[1] or is_hunk then lines[#lines + 1] = line end
    end
  end
  for i, list in ipairs(parts) do parts[i] = table.concat(list) end
  return parts
end

---The entries of a tree below some names, or all.
---@param tree string
---@return table<string, {mode: string, oid: string}>? by_name
---@return string? err
---@return string? code
function Store:list(tree)
  local list, err, code = self:diff(M.EMPTY_TREE, tree, { all = true })
  if not list then return nil, err, code end
  local out = {}
  for _, item in ipairs(list) do out[item.name] = { mode = item.new_mode, oid = item.new_oid } end
  return out
end

---The bytes of a blob.
---@param oid string
---@return string? bytes
---@return string? err
---@return string? code
function Store:blob(oid)
  if oid == EMPTY_BLOB then return "" end
  return run(self, { "cat-file", "blob", oid }, { max_bytes = BLOBS_BYTES })
end

---Several blobs at once, as far as they are not too long together.
---@param oids string[]
---@return table<string, string>? by_oid
---@return string? err
---@return string? code
function Store:blobs(oids)
  local out, err, code = run(self, { "cat-file", "--batch" },
    { stdin = table.concat(oids, "\n") .. "\n", max_bytes = BLOBS_BYTES })
  if not out then return nil, err, code end
  local found, at = {}, 1
  while at <= #out do
    local oid, size, from = out:match("^(%x+) blob (%d+)\n()", at)
    if not oid then break end
    found[oid] = out:sub(from, from + size - 1)
    at = from + size + 1
  end
  return found
end

---Runs a command of the collector.
---@param args string[]
---@param stdin string?
---@param timeout_ms integer?
---@return string? out
---@return string? err
---@return string? code
function Store:command(args, stdin, timeout_ms)
  return run(self, args, { stdin = stdin, timeout_ms = timeout_ms })
end

---Which of some paths the rules of the tree leave out, judged without the project's repository.
---@param paths string[]
---@return table<string, boolean>? ignored
---@return string? err
---@return string? code
function Store:ignored(paths)
  local out, err, code = run(self, { "check-ignore", "--no-index", "-z", "--stdin" }, {
    stdin = table.concat(paths, "\0") .. "\0", take = { [1] = true }, work_tree = self.root,
  })
  if not out then return nil, err, code end
  local found = {}
  for path in out:gmatch("([^%z]+)%z") do found[path] = true end
  return found
end

return M
