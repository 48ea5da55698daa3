-- Owns: the $SCRATCH directory of a conversation: its name, its marker, finding it again.
-- Must not know: what is put there. Files come through the fs port. Runs in efrd.
--
-- Policy: scratch/<date>-<slug>-<end of the id>, made non-recursively, mode 0700. The marker file
-- with the conversation's id is what makes a directory ours: one without it, or a link, is never
-- used. A name that is taken gets a longer end, then the whole id, then -2 to -9.

local M = {}

local MARKER <const> = ".efr-conversation"
local MAX_SLUG <const> = 48
local MAX_WORDS <const> = 5

---At most five words of a title, lower case ASCII.
---@param title string
---@return string
function M.slug(title)
  local words, size = {}, 0
  for word in title:lower():gmatch("[a-z0-9]+") do
    local room = MAX_SLUG - size - (#words > 0 and 1 or 0)
    if #words == MAX_WORDS or room <= 0 then break end
    word = word:sub(1, room)
    size = size + #word + (#words > 0 and 1 or 0)
    words[#words + 1] = word
  end
  return #words > 0 and table.concat(words, "-") or "conversation"
end

local function is_ours(fs, dir, id)
  local info = fs.lstat(dir)
  if not info or info.type ~= "dir" then return false end
  local text = fs.read_real(dir .. "/" .. MARKER, 256)
  return text ~= nil and text:match("^%s*(.-)%s*$") == id
end

-- The ends that a name may have, in the order in which they are tried.
local function ends_of(id)
  local hex = id:gsub("-", "")
  local out = { hex:sub(-8), hex:sub(-12), id }
  for n = 2, 9 do out[#out + 1] = id .. "-" .. n end
  return out
end

local function has_end(name, ends)
  for _, tail in ipairs(ends) do
    if name:sub(-#tail - 1) == "-" .. tail then return true end
  end
  return false
end

local function find(fs, root, id, ends)
  for _, entry in ipairs(fs.readdir(root) or {}) do
    local name = entry.name or entry[1]
    if has_end(name, ends) and is_ours(fs, root .. "/" .. name, id) then
      return root .. "/" .. name
    end
  end
  return nil
end

---The scratch directory of a conversation; made when there is none.
---@param fs table
---@param root string  data/scratch
---@param opts {id: string, title: string, date: string}  date = YYYY-MM-DD
---@return string|nil dir
---@return string? message
---@return string? code
function M.ensure(fs, root, opts)
  local ok, message, code = fs.mkdirs(root, 448) -- 0700
  if not ok then return nil, message, code end
  local ends = ends_of(opts.id)
  local found = find(fs, root, opts.id, ends)
  if found then return found end
  local head = ("%s/%s-%s-"):format(root, opts.date, M.slug(opts.title))
  for _, tail in ipairs(ends) do
    local dir = head .. tail
    ok, message, code = fs.mkdir(dir, 448)
    if ok then
      ok, message, code = fs.write_atomic(dir .. "/" .. MARKER, opts.id .. "\n", 384) -- 0600
      if not ok then return nil, message, code end
      return dir
    end
    if code ~= "EEXIST" then return nil, message, code end
  end
  return nil, "every name for the scratch directory is taken", "EEXIST"
end

return M
