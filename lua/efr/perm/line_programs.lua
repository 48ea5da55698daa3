-- Owns: what one command reads and writes, from its words and the record of its program.
-- Must not know: the line around it, the disk.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.
--
-- Policy: without a record every operand is a read, and so is what an option may have as a path:
-- `--file=x`, `-f/x`, the part behind the first colon, the value of `name=value`, the file of
-- `@file` and `name=@file`, the path of a file URL.

local heuristics = require "efr.perm.heuristics"
local find_words = require "efr.perm.lenient_peel"
local options = require "efr.perm.options"
local programs = require "efr.perm.programs"
local wrappers = require "efr.perm.wrappers"

local M = {}

local byte, find, match = string.byte, string.find, string.match

local DASH <const> = 45
local NONE <const> = {}

-- The records with something that extras declares.
local WITH_EXTRAS <const> = {}
for _, record in pairs(programs.all()) do
  for _, key in ipairs { "outputs", "reads", "outputs_named", "in_place", "anywhere", "writes_cwd",
    "trees" } do
    if record[key] then WITH_EXTRAS[record] = true end
  end
end

-- Parts of words -------------------------------------------------------------------------------

local function is_option(word)
  local shape = word.shape
  return byte(shape) == DASH and #shape > 1
end

-- The word from a byte on, as a word of its own.
local function part(word, from)
  local shape = word.shape:sub(from)
  return {
    text = word.text and shape, shape = shape, fixed = word.fixed:sub(from), glob = word.glob,
    open = word.open, home = shape:find("^~/") ~= nil or shape == "~",
  }
end

local FILE_URL <const> = "[fF][iI][lL][eE]://[^/]*()/"

-- `@file`, `-d@file`, `name=@file`, `name=<file`, and file URLs: what curl and its like send.
local function sent_paths(places, word, why)
  local shape = word.shape
  if find(shape, "@", 1, true) or find(shape, "<", 1, true) then
    local at = match(shape, "^@()") or match(shape, "^%-%w+@()") or match(shape, "=[@<]()")
      or match(shape, "^[%w_.-]+@()%.?%.?/")
    if at then places:read(part(word, at), why) end
  end
  local slash = find(shape, "://", 1, true) and match(shape, FILE_URL)
  if not slash then return end
  if find(shape, "[%%%[{]", slash) then return places:anywhere("read", why) end
  places:read(part(word, slash), why)
end

-- What an option's word may name.
local function option_paths(places, word, why)
  local shape = word.shape
  sent_paths(places, word, why)
  local equals = match(shape, "^%-%-[^=]*=()")
  if equals then
    places:read(part(word, equals), why)
  elseif word.open then
    places:anywhere("read", why)
  elseif find(shape, "^%-[^-]") then
    local slash = find(shape, "/", 3, true)
    if slash then
      places:read(part(word, 3), why)
      places:read(part(word, slash), why)
    end
  end
end

-- `host:path`, `name=value`: the second half may be a path, too.
local function inner_paths(places, word, why)
  local shape = word.shape
  local colon = find(shape, ":", 1, true)
  if colon and not find(shape, "://", 1, true) then
    places:read(part(word, colon + 1), why)
  end
  local equals = find(shape, "=", 2, true)
  if equals and find(shape, "^[%w_%-]+=") then places:read(part(word, equals + 1), why) end
end

local function operand_paths(places, word, why)
  local shape = word.shape
  if shape == "-" then return end
  places:add(word, "read", false, why)
  if word.open or not find(shape, "[:=@<]") then return end
  inner_paths(places, word, why)
  sent_paths(places, word, why)
end

-- Default ---------------------------------------------------------------------------------------

local OPERANDS <const> = {}

OPERANDS.read = operand_paths

function OPERANDS.write(places, word, why)
  places:write(word, why)
end

function OPERANDS.write_later(places, word, why, count)
  if count > 1 then places:write(word, why) else operand_paths(places, word, why) end
end

function OPERANDS.tree(places, word, why, _, contents)
  if word.shape ~= "-" then places:tree(word, why, contents) end
end

function OPERANDS.last_output(places, word, why, count)
  if count > 1 then places:write(word, why) else operand_paths(places, word, why) end
end

local function by_operands(places, command, record)
  local why = command.program or "a program"
  local fn = OPERANDS[record.operands or "read"]
  local words, ended, count = command.words, false, 0
  local contents = record.recursive and options.stands(record.recursive, words)
  for i = 2, #words do
    local word = words[i]
    if not ended and byte(word.shape) == DASH and word.shape ~= "-" then
      if word.text == "--" then ended = true else option_paths(places, word, why) end
    else
      count = count + 1
      fn(places, word, why, count, contents)
    end
  end
end

-- Programs with known options ------------------------------------------------------------------

local FILE_OPTIONS <const> = {
  f = true, file = true, X = true, ["exclude-from"] = true, ["ignore-file"] = true,
}

local function option_values(places, parsed, why)
  local all = parsed.options
  for i = 1, #all do
    local option = all[i]
    local value = option.value
    if value and (value.text or FILE_OPTIONS[option.name]) then places:read(value, why) end
  end
end

local function operands_of(parsed, record, words)
  if parsed.uncertain then return options.all(words) end
  local pattern = record.pattern
  if not pattern or options.has(parsed, pattern) then return parsed.operands end
  return table.move(parsed.operands, 2, #parsed.operands, 1, {})
end

local function by_options(places, command, record)
  local why, words = command.program, command.words
  local parsed = options.parse(record, words)
  option_values(places, parsed, why)
  local tree = record.tree == "always"
    or (record.tree and (parsed.uncertain or options.has(parsed, record.tree)))
  local contents = record.dot_files
    and (parsed.uncertain or options.has(parsed, record.dot_files))
  local operands = operands_of(parsed, record, words)
  for i = 1, #operands do
    local word = operands[i]
    if word.shape ~= "-" then places:add(word, "read", tree, why, contents) end
  end
  if parsed.uncertain or (#operands == 0 and tree) then
    places:base("read", tree, why, contents)
  elseif #operands == 0 and record.default_read then
    places:base("read", false, why)
  end
  if parsed.uncertain then
    for i = 2, #words do option_paths(places, words[i], why) end
  end
end

-- In place: every operand is written. A script in front of them does no harm.
local function in_place(places, command, record)
  local hit = false
  for i = 2, #command.words do
    local shape = command.words[i].shape
    local name = shape:match("^%-%-([^=]+)")
    if name then
      local long = record.in_place_long
      hit = hit or (long ~= nil and long:sub(1, #name) == name)
    elseif shape:find("^%-[^-]*" .. record.in_place) then
      hit = true
    end
  end
  if not hit then return end
  local parsed = options.parse(record, command.words)
  for _, word in ipairs(operands_of(parsed, record, command.words)) do
    if not is_option(word) then places:write(word, command.program) end
  end
end

local function extras(places, command, record)
  local why, words = command.program, command.words
  if record.outputs then
    options.each_value(record.outputs, words, function(word)
      if word.shape ~= "-" then places:write(word, why) end
    end)
  end
  if record.reads then
    options.each_value(record.reads, words, function(word) places:read(word, why) end)
  end
  for _, name in ipairs(record.outputs_named or NONE) do
    for i = 2, #words do
      if words[i].shape:sub(1, #name + 1) == name .. "=" then
        places:write(part(words[i], #name + 2), why)
      end
    end
  end
  if record.in_place then in_place(places, command, record) end
  if record.anywhere then
    options.each_value(record.anywhere, words, function() places:anywhere("read", why) end)
  end
  if record.writes_cwd then places:base("write", false, why) end
  for _, tree in ipairs(record.trees or NONE) do
    places:tree({ shape = tree, fixed = tree, text = tree }, why)
  end
end

-- Copies ----------------------------------------------------------------------------------------

local COPY <const> = {
  flags = "abdfHilLnpPrRsTuvxZFBcDC",
  values = "tSgmo",
  long_flags = { "archive", "attributes-only", "backup", "copy-contents", "debug",
    "dereference", "force", "interactive", "link", "logical", "no-clobber", "no-dereference",
    "no-target-directory", "one-file-system", "parents", "physical", "preserve", "recursive",
    "reflink", "relative", "remove-destination", "sparse", "strip-trailing-slashes", "symbolic",
    "symbolic-link", "update", "verbose", "help", "version", "context", "directory", "compare",
    "strip", "preserve-timestamps" },
  long_values = { "target-directory", "suffix", "no-preserve", "mode", "owner", "group" },
}
local TARGET <const> = { short = "t", long = { "target-directory" } }
local HARD <const> = { short = "l", long = { "link" } }
local SYMBOLIC <const> = { short = "s", long = { "symbolic" } }
local MADE_DIRECTORY <const> = { short = "d", long = { "directory" } }

local function option_behind_operand(words)
  local seen = false
  for i = 2, #words do
    if words[i].text == "--" then return false end
    if is_option(words[i]) then
      if seen then return true end
    else
      seen = true
    end
  end
  return false
end

-- The words of a copying program, and whether each may be written.
local function copied(command)
  local parsed = options.parse(COPY, command.words)
  local target
  for _, option in ipairs(parsed.options) do
    if option.name == "t" or option.name == "target-directory" then target = option.value end
  end
  local all = parsed.uncertain or options.has(parsed, TARGET)
    or option_behind_operand(command.words)
  return parsed, all, target
end

local function is_remote(word)
  return word.shape:find("^[^/]*:") ~= nil
end

-- Only scp and rsync know hosts; for the others such an operand is a name with a colon.
local function has_remote(operands)
  for _, word in ipairs(operands) do
    if is_remote(word) then return true end
  end
  return false
end

local SPECIAL <const> = {}

local function write_target(places, target, why)
  if not target then return end
  places:write(target, why)
  places:link(target)
end

-- Trees of the sources are read; the last operand, or the target directory, is written.
function SPECIAL.copy(places, command)
  local why = command.program
  local parsed, all, target = copied(command)
  local operands = parsed.uncertain and options.all(command.words) or parsed.operands
  all = all or options.has(parsed, HARD)
    or (why == "install" and options.has(parsed, MADE_DIRECTORY))
  write_target(places, target, why)
  local sends = has_remote(operands)
  for i, word in ipairs(operands) do
    if not is_remote(word) then
      local last = i == #operands and not target
      if all or last then places:write(word, why) end
      if all or not last then places:tree(word, why, sends) end
    end
  end
  local last = operands[#operands]
  if last and not is_remote(last) then places:link(last) end
end

function SPECIAL.move(places, command)
  local parsed, _, target = copied(command)
  local operands = parsed.uncertain and options.all(command.words) or parsed.operands
  if target then operands = table.move({ target }, 1, 1, #operands + 1, operands) end
  for _, word in ipairs(operands) do places:write(word, command.program) end
  if #operands > 0 then places:link(operands[#operands]) end
end

-- A link without a name of its own gets the last component of what it points to.
local function link_here(places, word, why)
  local name = word.text and word.text:match("([^/]*)/*$") or ""
  if name == "" then
    places:base("write", false, why)
    return places:link_anywhere()
  end
  local made = { text = name, shape = name, fixed = name }
  places:write(made, why)
  places:link(made)
end

function SPECIAL.link(places, command)
  local why = command.program
  local parsed, all, target = copied(command)
  local operands = parsed.uncertain and options.all(command.words) or parsed.operands
  all = all or not options.has(parsed, SYMBOLIC)
  write_target(places, target, why)
  for i, word in ipairs(operands) do
    local made = i == #operands and #operands > 1 and not target
    if made or all then places:write(word, why) end
    if not made then places:read(word, why) end
  end
  if target then return end
  if #operands == 1 then return link_here(places, operands[1], why) end
  if #operands > 1 then places:link(operands[#operands]) end
end

-- find ------------------------------------------------------------------------------------------

local FIND_READS <const> = { ["-samefile"] = true }
local FIND_WRITES <const> = { ["-fprint"] = true, ["-fprint0"] = true, ["-fprintf"] = true,
  ["-fls"] = true }

function SPECIAL.find(places, command)
  local why, words = command.program, command.words
  local points = find_words.start_points(words)
  if #points == 0 then places:base("read", true, why) end
  for _, point in ipairs(points) do places:tree(point, why) end
  for i = 2, #words do
    local text = words[i].shape
    local value = words[i + 1]
    if text == "-delete" then
      if #points == 0 then places:base("write", false, why) end
      for _, point in ipairs(points) do places:write(point, why) end
    elseif text == "-files0-from" then
      places:anywhere("read", why)
    elseif value and FIND_WRITES[text] then
      places:write(value, why)
    elseif value and (FIND_READS[text] or text:find("^%-[acBm]?newer")) then
      places:read(value, why)
    end
  end
end

-- git -------------------------------------------------------------------------------------------

local GIT_WRITERS <const> = { rm = true, mv = true, clone = true, init = true }

local function clone_target(words, from)
  local operands = {}
  for i = from, #words do
    if not is_option(words[i]) then operands[#operands + 1] = words[i] end
  end
  if #operands ~= 1 or not operands[1].text then return nil end
  local name = operands[1].text:gsub("/+$", ""):gsub("%.git$", ""):match("([^/:]*)$")
  if name == "" then return nil end
  return { text = name, shape = name, fixed = name }
end

local function git_writes(places, command, from)
  local words, verb = command.words, command.words[from].text
  local last
  for i = from + 1, #words do
    if not is_option(words[i]) then
      if not (verb == "clone" and i < #words) then places:write(words[i], "git " .. verb) end
      places:read(words[i], "git " .. verb)
      last = words[i]
    end
  end
  if verb == "clone" then
    local made = clone_target(words, from + 1)
    if made then places:write(made, "git clone") end
    last = made or last
  end
  if last then places:link(last) end
end

function SPECIAL.git(places, command)
  local words = command.words
  local at = heuristics.git_verb(words)
  for i = 2, (at or #words + 1) - 1 do
    if words[i].shape == "-C" and words[i + 1] then places:also(words[i + 1]) end
  end
  local verb = at and words[at].text
  if verb == "worktree" and words[at + 1] and words[at + 1].text == "add" then
    for i = at + 2, #words do
      if not is_option(words[i]) then
        places:write(words[i], "git worktree add")
        places:link(words[i])
      end
    end
  elseif verb and GIT_WRITERS[verb] then
    git_writes(places, command, at)
  end
  by_operands(places, command, {})
end

-- One command -----------------------------------------------------------------------------------

-- The file that a first word names, and anything where an expansion makes several words.
local function program_file(places, words, node, why)
  local first = words[1]
  if first.open or find(first.shape, "/", 1, true) then places:read(first, why) end
  -- No plain word becomes several.
  if node and node.plain and node.words == words then return end
  for i = 1, #words do
    if words[i].splits then places:anywhere("read", why) end
  end
end

---Declares what a command reads and writes.
---@param places table  of efr.perm.places
---@param command table  of efr.perm.lenient
function M.declare(places, command)
  local program, words = command.program, command.words
  local record = programs.get(program)
  if record.operands == "none" and not record.trees then return end
  if record.names_only then places:names_only() end
  local why = program or "a program"
  program_file(places, words, command.node, why)
  if not program or wrappers.is_wrapper(program) then record = NONE end
  if record.moves then
    options.each_value(record.moves, words, function(word) places:also(word) end)
  end
  if record.special then
    SPECIAL[record.special](places, command)
  elseif record.tree or record.pattern then
    by_options(places, command, record)
  else
    by_operands(places, command, record)
  end
  if WITH_EXTRAS[record] then extras(places, command, record) end
end

return M
