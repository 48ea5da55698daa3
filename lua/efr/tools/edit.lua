-- Owns: the tool edit: replaces one exact text by another.
-- Must not know: who decides whether it runs.
-- Runs in efrd, on the loop thread.
--
-- Policy: it works on the bytes of the file. Bytes that are no UTF-8 stay as they are wherever they
-- are not part of the replaced text.

local files = require "efr.tools.lib.files"
local list = require "efr.util.list"
local text = require "efr.util.text"

local M = {}

local NEAREST_LINES <const> = 12
local NEAREST_BYTES <const> = 1024 * 1024
local SHOWN_LINE_BYTES <const> = 200

M.name = "edit"
M.description = [[Replaces text in a file. old_string must stand in the file exactly as given, with
its blanks and line ends, and only once, unless replace_all is true. Read the file first.]]
M.schema = {
  type = "object",
  properties = {
    path = { type = "string", description = "Absolute, ~/..., $SCRATCH/..., or relative." },
    old_string = { type = "string", description = "The exact text to replace." },
    new_string = { type = "string", description = "The text to put there." },
    replace_all = { type = "boolean", description = "Replace every match. Default: false." },
  },
  required = { "path", "old_string", "new_string" },
}

---@param input table
---@param ctx efr.ToolContext
---@return table[]? requirements
---@return string? err
function M.declare(input, ctx)
  for _, name in ipairs { "old_string", "new_string" } do
    if type(input[name]) ~= "string" then return nil, name .. " must be a string." end
  end
  if input.replace_all ~= nil and type(input.replace_all) ~= "boolean" then
    return nil, "replace_all must be true or false."
  end
  if input.old_string == "" then
    return nil, "old_string must not be empty. Use write_file to create a file."
  end
  if input.old_string == input.new_string then
    return nil, "old_string and new_string are equal; there is nothing to change."
  end
  local target, err = files.resolve(input, ctx)
  if not target then return nil, err end
  -- A text that does not match is answered with lines of the file, so an edit also reads.
  return list.extend(files.requirements("read", target), files.requirements("write", target))
end

-- Whether every line of the file ends in CRLF.
local function is_crlf(bytes)
  local _, feeds = bytes:gsub("\n", "")
  local _, pairs_of = bytes:gsub("\r\n", "")
  return feeds > 0 and feeds == pairs_of and bytes:sub(-1) == "\n"
end

local function strings_for(bytes, input)
  local old, new = input.old_string, input.new_string
  if is_crlf(bytes) and not old:find("\r", 1, true) and not new:find("\r", 1, true) then
    return (old:gsub("\n", "\r\n")), (new:gsub("\n", "\r\n"))
  end
  return old, new
end

local function replace(bytes, old, new)
  local out, from, count = {}, 1, 0
  while true do
    local i, j = bytes:find(old, from, true)
    if not i then break end
    out[#out + 1] = bytes:sub(from, i - 1)
    out[#out + 1] = new
    from, count = j + 1, count + 1
  end
  out[#out + 1] = bytes:sub(from)
  return table.concat(out), count
end

local function words_of(line)
  local set, count = {}, 0
  for word in line:gmatch("[%w_\x80-\xff]+") do
    if not set[word] then set[word], count = true, count + 1 end
  end
  return set, count
end

-- How alike a line is to the wanted one: 1 when only blanks differ, else the share of common words.
local function likeness(line, wanted)
  if text.trim(line) == wanted.trimmed then return 1 end
  local set, count = words_of(line)
  local common = 0
  for word in pairs(set) do
    if wanted.words[word] then common = common + 1 end
  end
  return common == 0 and 0 or common / (count + wanted.count - common) * 0.9
end

-- The line of the wanted text that says most: a lone bracket would be found anywhere.
local function telling_line(old)
  local wanted
  for i, line in ipairs(text.lines(old)) do
    local words, count = words_of(line)
    local trimmed = text.trim(line)
    if trimmed ~= "" and (not wanted or count > wanted.count) then
      wanted = { trimmed = trimmed, words = words, count = count, number = i }
    end
  end
  return wanted
end

local function most_alike(lines, wanted)
  local best, at = 0, nil
  for i, line in ipairs(lines) do
    local score = likeness(line, wanted)
    if score > best then best, at = score, i end
  end
  -- Where the wanted text would begin.
  return at and math.max(at - wanted.number + 1, 1)
end

local function nearest(bytes, old)
  if #bytes > NEAREST_BYTES then return "" end
  local wanted, lines = telling_line(old), text.lines(bytes)
  local at = wanted and most_alike(lines, wanted)
  if not at then return "" end
  local first = math.max(at - 3, 1)
  local out = {}
  for i = first, math.min(first + NEAREST_LINES - 1, #lines) do
    local line = lines[i]
    if #line > SHOWN_LINE_BYTES then
      line = line:sub(1, text.char_end(line, SHOWN_LINE_BYTES)) .. "..."
    end
    out[#out + 1] = ("%d: %s"):format(i, line)
  end
  return "\nThe nearest lines:\n" .. table.concat(out, "\n")
end

local function not_found(bytes, old, ctx)
  local hint = ""
  if not ctx.text.is_utf8(bytes) then
    hint = " The file has bytes that are no UTF-8 (shown as U+FFFD); leave them out of old_string."
  end
  return ("old_string was not found in %s.%s%s"):format(ctx.target.shown, hint, nearest(bytes, old))
end

-- The new bytes of the file and the number of matches, or nil and the error.
local function compute(input, ctx)
  local bytes, err, code = files.read(ctx)
  if code == "ENOENT" then
    return nil, ctx.target.shown .. " does not exist. Use write_file to create it."
  end
  if not bytes then return nil, err end
  if files.is_binary(bytes) then return nil, ctx.target.shown .. " is not a text file." end
  local old, new = strings_for(bytes, input)
  local changed, count = replace(bytes, old, new)
  if count == 0 then return nil, not_found(bytes, old, ctx) end
  if count > 1 and not input.replace_all then
    return nil, ("old_string has %d matches in %s. Add lines around it until it is unique, or set "
      .. "replace_all."):format(count, ctx.target.shown)
  end
  return { old = bytes, new = changed, count = count }
end

---@param input table
---@param ctx efr.ToolContext
---@return string? diff
function M.preview(input, ctx)
  local edit, err = compute(input, ctx)
  if not edit then return err end
  return files.preview(edit.old, edit.new)
end

---@param input table
---@param ctx efr.ToolContext
---@return efr.ToolResult
function M.run(input, ctx)
  local edit, err = compute(input, ctx)
  local ok = edit
  if edit then ok, err = files.write(ctx, edit.new) end
  if not ok then return { output = err, is_error = true } end
  local changes, diff = files.report(ctx, edit.old, edit.new)
  return {
    output = ("%sSuccess. Replaced %s in %s."):format(files.link_note(ctx.target),
      text.plural(edit.count, "match", "matches"), ctx.target.shown),
    is_error = false, changes = changes, diff = diff,
  }
end

return M
