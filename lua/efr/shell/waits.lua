-- What a command waits for at its terminal.
--
-- Owns: the rules by which facts become a kind of wait, the words of prompts. Must not know: where
-- the facts come from, who answers. Pure; prompts are bytes that a program chose. Runs in efrd.
--
-- Policy (ux.md 8.7): modes come first, then who reads. A command that nobody reads for does not
-- wait, whatever its terminal looks like: a false alarm for hidden input would end it. Where the
-- readers cannot be seen, longer silence stands in for them.

local M = {}

M.QUIET_MS = 300 ---@type integer
local UNSEEN_HIDDEN_MS <const> = 1000
local UNSEEN_VISIBLE_MS <const>, UNSEEN_QUESTION_MS <const> = 3000, 500

-- "hidden" and "visible" can be answered. The others only say how a command stands that goes on:
-- "keys" takes single keys, "full_screen" fills the screen, "input" reads lines without a prompt.
---@alias efr.shell.WaitKind "hidden"|"visible"|"keys"|"full_screen"|"input"

---@class efr.shell.WaitFacts
---@field quiet_ms integer  silence of the terminal
---@field echo boolean
---@field canonical boolean  line mode
---@field reads boolean  a thread of the foreground group waits for the terminal
---@field unknown boolean  some thread could not be looked at
---@field row string?  what stands before the cursor in its row
---@field alternate boolean?  the alternate screen shows
---@field no_cursor boolean?  the program hid the cursor: what it shows is no place to type at
---@field contained boolean?
---@field shell_line boolean?  the line starts a shell or an interpreter: an answer is a command

local SECRET_WORDS <const> = {
  "password", "passphrase", "passcode", "verification%s+code", "one%-time%s+code",
  "one%s+time%s+code", "one%-time%s+password",
}

---Whether a prompt names something that is no answer for other eyes.
---@param row string
---@return boolean
function M.names_secret(row)
  local text = row:lower()
  for _, word in ipairs(SECRET_WORDS) do
    if text:find(word) then return true end
  end
  return text:find("%f[%w]pin%f[%W]") ~= nil
end

---Whether a row reads like a question.
---@param row string
---@return boolean
function M.is_question(row)
  local text = row:lower()
  for _, choice in ipairs { "[y/n]", "(y/n)", "[yes/no]", "(yes/no)" } do
    if text:find(choice, 1, true) then return true end
  end
  return text:find("[?:] $") ~= nil
end

-- Whether somebody reads, as far as it can be told: `unseen_ms` of silence count where it cannot.
local function is_read(facts, unseen_ms)
  if facts.reads then return true end
  return facts.unknown and facts.quiet_ms >= unseen_ms
end

-- How a reader stands that shows no place to type at.
local function standing_kind(facts)
  if not facts.reads then return nil end
  return facts.canonical and "input" or "keys"
end

local function visible_kind(facts)
  local row = facts.row or ""
  local unseen = M.is_question(row) and UNSEEN_QUESTION_MS or UNSEEN_VISIBLE_MS
  if not is_read(facts, unseen) then return nil end
  if facts.alternate then return "full_screen" end
  local hidden = facts.no_cursor and not facts.canonical
  if hidden or not row:find("%S") then return standing_kind(facts) end
  return facts.shell_line and "input" or "visible"
end

---What a command waits for, and whether its prompt looks secret.
---@param facts efr.shell.WaitFacts
---@return efr.shell.WaitKind? kind
---@return boolean looks_secret
function M.classify(facts)
  if facts.canonical and not facts.echo then
    return is_read(facts, UNSEEN_HIDDEN_MS) and "hidden" or nil, false
  end
  local kind = visible_kind(facts)
  if kind ~= "visible" then return kind, false end
  -- In line mode the terminal shows what is typed, so a person would see it there, too. A contained
  -- command gets no secret in any mode.
  local open = facts.contained or not facts.canonical
  return kind, open and M.names_secret(facts.row)
end

---The row of the cursor up to it, joined with the rows that run on into it, and whether the
---alternate screen shows; whether the cursor is hidden.
---@param snapshot table  of efr.shell.screen
---@return string row
---@return boolean alternate
---@return boolean no_cursor
function M.cursor_row(snapshot)
  local rows, last = snapshot.rows, snapshot.cursor.row + 1
  local parts, at = {}, 0
  for _, cell in ipairs(rows[last] and rows[last].cells or {}) do
    if at >= snapshot.cursor.col then break end
    parts[#parts + 1] = cell.text
    at = at + (cell.wide and 2 or 1)
  end
  -- Blank cells at the end of a row are left out of it.
  local text = table.concat(parts) .. (" "):rep(snapshot.cursor.col - at)
  for i = last - 1, 1, -1 do
    if not rows[i].wrapped then break end
    local above = {}
    for _, cell in ipairs(rows[i].cells) do above[#above + 1] = cell.text end
    text = table.concat(above) .. text
  end
  return text, snapshot.alternate_screen, snapshot.cursor.hidden or false
end

return M
