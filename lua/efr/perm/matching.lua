-- Owns: whether one simple command matches a command pattern, as in the resource
-- `{ command = {...} }` of `[[permissions.rules]]` and in the rows of read-only commands.
-- Must not know: how a line is read, effects or modes.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.
--
-- pattern  {program, args?, forbid?, min_operands?, max_operands?, max_options?, under?, check?}
-- command  {words, privileged?, moved?}: what efr.perm.strict and efr.perm.read_only give
--   words[i]   {text?, glob?, front?}: text is nil when efr cannot know the word; glob: the text
--              holds an active pattern; front: the pattern stands first, so the word may become
--              anything, also an option
--   privileged the program runs as another user; only a pattern of a rule that tightens matches it
--   moved      the directory may have changed earlier in the line; no `under` matches
-- ctx      {cwd, home, project?, scratch?}, all absolute, only for `under`
--
-- Policy: a word efr does not know matches only a pattern that takes any words at all.

local checks = require "efr.perm.checks"
local paths = require "efr.perm.paths"

local M = {}

-- Pattern words --------------------------------------------------------------------------------

local function alternatives(pattern)
  return pattern:gmatch("[^|]+")
end

local function arg_matches(pattern, word)
  if not word or not word.text or word.glob then return false end
  for one in alternatives(pattern) do
    if one:sub(-1) == "*" then
      local prefix = one:sub(1, -2)
      if word.text:sub(1, #prefix) == prefix then return true end
    elseif word.text == one then
      return true
    end
  end
  return false
end

local function is_option(text)
  return text:sub(1, 1) == "-" and text ~= "-"
end

-- `--name`: itself, with a value, and every abbreviation of more than two characters.
local function hits_long(form, text)
  local name = text:match("^[^=]*")
  return #name > 2 and form:sub(1, #name) == name
end

local function hits(form, text)
  if form:sub(1, 1) ~= "-" then
    return not is_option(text) and text:find(form, 1, true) ~= nil
  end
  if form:sub(-1) == "*" then
    local prefix = form:sub(1, -2)
    return text:sub(1, #prefix) == prefix
      or (form:sub(1, 2) == "--" and hits_long(prefix, text))
  end
  if form:sub(1, 2) == "--" then return hits_long(form, text) end
  if #form == 2 then
    return text:sub(1, 1) == "-" and text:sub(2, 2) ~= "-"
      and text:find(form:sub(2), 2, true) ~= nil
  end
  return text == form
end

---Whether one word is what a forbid form means.
---@param form string
---@param text string
---@return boolean
function M.hits(form, text)
  return hits(form, text)
end

-- Parts of a pattern ---------------------------------------------------------------------------

local function takes_all(pattern)
  return not (pattern.args and #pattern.args > 0) and not (pattern.forbid and #pattern.forbid > 0)
    and not pattern.min_operands and not pattern.max_operands and not pattern.max_options
    and not pattern.under and not pattern.check
end

-- Patterns do not change, so what was found of one is kept.
local BARE <const> = setmetatable({}, { __mode = "k" })

local function is_bare(pattern)
  local known = BARE[pattern]
  if known == nil then
    known = takes_all(pattern)
    BARE[pattern] = known
  end
  return known
end

---Whether a pattern takes any words after its program.
M.is_bare = is_bare

local function has_bare_wildcard(args)
  for _, pattern in ipairs(args or {}) do
    for one in alternatives(pattern) do
      if one:sub(1, 1) ~= "-" and one:sub(-1) == "*" then return true end
    end
  end
  return false
end

-- What a pattern may not have for a command with an active pattern of file names.
local function takes_globs(pattern)
  if pattern.min_operands or pattern.max_operands or pattern.check then return false end
  for _, form in ipairs(pattern.forbid or {}) do
    if form:sub(1, 1) ~= "-" then return false end
  end
  return not has_bare_wildcard(pattern.args)
end

local function knows_words(pattern, words)
  local globs = false
  for i = 2, #words do
    local word = words[i]
    if (not word.text or word.front) and not is_bare(pattern) then return false end
    if word.glob then globs = true end
  end
  return not globs or takes_globs(pattern)
end

local function count(words, first)
  local operands, options, ended = 0, 0, false
  for i = first, #words do
    if ended or not is_option(words[i].text) then
      operands = operands + 1
    else
      options = options + 1
      ended = words[i].text == "--"
    end
  end
  return operands, options
end

local function counts_match(pattern, words, first)
  local operands, options = count(words, first)
  return operands >= (pattern.min_operands or 0)
    and operands <= (pattern.max_operands or math.huge)
    and options <= (pattern.max_options or math.huge)
end

local function forbidden(pattern, words)
  for _, form in ipairs(pattern.forbid or {}) do
    for i = 2, #words do
      if hits(form, words[i].text) then return true end
    end
  end
  return false
end

local function check_matches(pattern, words, first)
  if not pattern.check then return true end
  local texts = {}
  for i = first, #words do texts[#texts + 1] = words[i].text end
  return checks[pattern.check](texts)
end

local function under_root(under, ctx)
  if under == "project" then return ctx.project end
  if under == "scratch" then return ctx.scratch end
  if under == "~" then return ctx.home end
  if under:sub(1, 2) == "~/" then return ctx.home and ctx.home .. under:sub(2) end
  return under
end

-- Where the directory is not known an allowing rule does not match, and a stricter one does.
local function under_matches(pattern, command, ctx, stricter)
  if not pattern.under then return true end
  if command.moved or not ctx or not ctx.cwd then return stricter end
  local root = under_root(pattern.under, ctx)
  return root and paths.within(ctx.cwd, root) or false
end

local function args_match(pattern, words)
  for i, arg in ipairs(pattern.args or {}) do
    if not arg_matches(arg, words[i + 1]) then return false end
  end
  return true
end

local function is_program(pattern, words)
  local first = words[1]
  return first ~= nil and first.text == pattern.program and not first.glob
end

local function fits(pattern, command, ctx, stricter)
  if is_bare(pattern) then return true end
  local words = command.words
  if not knows_words(pattern, words) or not args_match(pattern, words) then return false end
  local first = 2 + #(pattern.args or {})
  return counts_match(pattern, words, first) and not forbidden(pattern, words)
    and check_matches(pattern, words, first) and under_matches(pattern, command, ctx, stricter)
end

---Whether a command matches a pattern. One that runs as another user matches none.
---@param pattern table
---@param command table
---@param ctx table?
---@return boolean
function M.command(pattern, command, ctx)
  if command.privileged or not is_program(pattern, command.words) then return false end
  return fits(pattern, command, ctx, false)
end

-- The program that runs others as another user counts by its base name: whoever refuses sudo
-- refuses /usr/bin/sudo.
local function names_program(pattern, command)
  local words = command.words
  if is_program(pattern, words) then return true end
  local first = command.privileged and words[1]
  return first and first.text and not first.glob
    and first.text:match("[^/]*$") == pattern.program or false
end

---Whether a command matches the pattern of a rule that makes something stricter: as above, and
---also when it runs as another user, and when the directory that `under` asks for is not known.
---@param pattern table
---@param command table
---@param ctx table?
---@return boolean
function M.stricter(pattern, command, ctx)
  return names_program(pattern, command) and fits(pattern, command, ctx, true)
end

---Whether a command may match a pattern: as for a rule that makes something stricter, but a word
---efr does not know may be any word.
---@param pattern table
---@param command table
---@param ctx table?
---@return boolean
function M.might(pattern, command, ctx)
  if M.stricter(pattern, command, ctx) then return true end
  local first = command.words[1]
  if not first or (first.text and not first.glob and not names_program(pattern, command)) then
    return false
  end
  for i = 1, #command.words do
    local word = command.words[i]
    if not word.text or word.glob then return true end
  end
  return false
end

return M
