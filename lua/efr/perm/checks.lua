-- Owns: the checks of command patterns that no list of words can express.
-- Must not know: rules, rows or how a line is read.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.
--
-- A check gets the words after the program and after the pattern's `args`, as strings, and says
-- whether they have the harmless form. What it does not know is not harmless.

local lpeg = require "lpeg"

local P <const>, R <const>, S <const> = lpeg.P, lpeg.R, lpeg.S

local M = {}

---Programs a check belongs to; a pattern may use it for these only. nil: for every program.
---@type table<string, string|nil>
M.PROGRAMS = {
  sed_print_only = "sed", date_prints = "date", printf_plain = "printf",
  jq_closed = "jq", names_unit = "systemctl",
}

---The checks a user's rule may name.
---@type table<string, boolean>
M.FOR_USERS = { sed_print_only = true, ref_names = true }

-- sed -------------------------------------------------------------------------------------------

-- sed's language as far as it only prints: no file name, no command, no group, no label.
local function sed_grammar(loud)
  local blank <const> = S " \t" ^ 0
  local digits <const> = R "09" ^ 1
  -- A bracket expression may hold the delimiter, so it is no part of this form.
  local escape <const> = P "\\" * (1 - P "\n")
  local regex <const> = P "/" * (escape + (1 - S "/\\[\n")) ^ 0 * P "/"
  local text <const> = (escape + (1 - S "/\\\n")) ^ 0 * P "/"
  local address <const> = digits * P "~" * digits + digits + P "$" + regex * S "IM" ^ 0
  local second <const> = S "+~" * digits + address
  local range <const> = address * (blank * P "," * blank * second) ^ -1
  local addresses <const> = range * blank * (P "!" * blank) ^ -1
  local substitute <const> = P "s" * regex * text * (S "gpiIM" + R "09") ^ 0
  local leave <const> = S "qQ" * (blank * digits) ^ -1
  local command = substitute + P "d" + leave
  if not loud then command = command + S "p=" + P "l" * (blank * digits) ^ -1 end
  local one <const> = addresses ^ -1 * command * blank
  local separator <const> = S ";\n"
  local skip <const> = S " \t;\n" ^ 0
  return skip * (one * (separator * skip * one) ^ 0 * (separator * skip) ^ -1) ^ -1 * P(-1)
end

local SED_QUIET <const>, SED_LOUD <const> = sed_grammar(false), sed_grammar(true)
local SED_LONG <const> = {
  ["--regexp-extended"] = true, ["--unbuffered"] = true, ["--posix"] = true, ["--sandbox"] = true,
}
local SED_QUIET_LONG <const> = { ["--quiet"] = true, ["--silent"] = true }

local function sed_long(state, word)
  if SED_LONG[word] then return true end
  if SED_QUIET_LONG[word] then
    state.quiet = true
    return true
  end
  local script = word:match("^%-%-expression=(.*)$")
  if script then
    state.scripts[#state.scripts + 1] = script
  elseif word == "--expression" then
    state.wants_script = true
  else
    return false
  end
  return true
end

-- A cluster of short options; e takes what follows, or the next word.
local function sed_short(state, word)
  local letters, rest = word:match("^%-([nEru]*)(.*)$")
  if letters:find("n", 1, true) then state.quiet = true end
  if rest == "" then return true end
  if rest:sub(1, 1) ~= "e" then return false end
  if rest == "e" then
    state.wants_script = true
  else
    state.scripts[#state.scripts + 1] = rest:sub(2)
  end
  return true
end

local function sed_word(state, word)
  if state.wants_script then
    state.scripts[#state.scripts + 1] = word
    state.wants_script = false
    return true
  end
  if state.ended or word == "-" or word:sub(1, 1) ~= "-" then
    state.operands[#state.operands + 1] = word
    return true
  end
  if word == "--" then
    state.ended = true
    return true
  end
  if word:sub(1, 2) == "--" then return sed_long(state, word) end
  return sed_short(state, word)
end

---sed that prints, deletes and replaces in its output, and does nothing else.
---@param words string[]
---@return boolean
function M.sed_print_only(words)
  local state = { scripts = {}, operands = {} }
  for _, word in ipairs(words) do
    if not sed_word(state, word) then return false end
  end
  if state.wants_script then return false end
  if #state.scripts == 0 then state.scripts[1] = state.operands[1] end
  if #state.scripts == 0 then return false end
  local grammar = state.quiet and SED_QUIET or SED_LOUD
  -- sed joins the scripts with newlines. A script that ends in a backslash would take the newline.
  for _, script in ipairs(state.scripts) do
    if not grammar:match(script) then return false end
  end
  return true
end

-- git names -------------------------------------------------------------------------------------

local function ref_name(word)
  return word:find("^[%w_][%w._/~^-]*$") ~= nil and not word:find("..", 1, true)
    and not word:find("//", 1, true) and not word:find("[/.]$")
end

---Every word that is no option is the name of a git ref or remote, not a file.
---@param words string[]
---@return boolean
function M.ref_names(words)
  for _, word in ipairs(words) do
    if word == "--" then return false end
    if word:sub(1, 1) ~= "-" and not ref_name(word) then return false end
  end
  return true
end

-- date ------------------------------------------------------------------------------------------

-- Values of these options; every other operand must be a format, because `date TIME` sets the
-- clock.
local DATE_VALUE <const> = {
  ["-d"] = true, ["-r"] = true, ["-f"] = true, ["--date"] = true, ["--reference"] = true,
  ["--file"] = true,
}

---date that prints.
---@param words string[]
---@return boolean
function M.date_prints(words)
  local value, ended = false, false
  for _, word in ipairs(words) do
    if value then
      value = false
    elseif not ended and word == "--" then
      ended = true
    elseif not ended and DATE_VALUE[word] then
      value = true
    elseif (ended or word:sub(1, 1) ~= "-") and word:sub(1, 1) ~= "+" then
      return false
    end
  end
  return true
end

-- jq --------------------------------------------------------------------------------------------

---jq whose program does not reach the environment or other files. Its program may begin with a
---dash.
---@param words string[]
---@return boolean
function M.jq_closed(words)
  local ended = false
  for _, word in ipairs(words) do
    ended = ended or word == "--"
    if ended or not word:find("^%-%-") then
      for _, name in ipairs { "env", "ENV", "include", "import" } do
        if word:find(name, 1, true) then return false end
      end
    end
  end
  return true
end

-- systemctl -------------------------------------------------------------------------------------

-- Options without a value. What stands behind another one may be its value.
local SYSTEMCTL_FLAGS <const> = {}
for word in ("-a -l -q -r --all --full --no-pager --no-legend --plain --quiet --recursive --value "
  .. "--user --system --"):gmatch "%S+" do SYSTEMCTL_FLAGS[word] = true end

---systemctl with the name of a unit among its words: without one `show` prints the manager's
---environment.
---@param words string[]
---@return boolean
function M.names_unit(words)
  local free = true
  for _, word in ipairs(words) do
    if word:sub(1, 1) == "-" then
      free = SYSTEMCTL_FLAGS[word] or word:find("^%-%-[^=]+=") ~= nil
    elseif free and word ~= "" then
      return true
    else
      free = true
    end
  end
  return false
end

-- printf ----------------------------------------------------------------------------------------

local FLAG <const> = S "-+ #0'"
local TEXT_CONVERSION <const> = P "%" * FLAG ^ 0 * R "09" ^ 0 * (P "." * R "09" ^ 0) ^ -1
  * (S "sbqc" * lpeg.Cc "text" + S "diouxXeEfFgGaA" * lpeg.Cc "number")
-- zsh decodes the escapes before it looks for conversions, so `\u0025` is a `%`.
local ESCAPE <const> = P "\\" * (S "abefnrtv\\\"'" + P "0" * -R "09")
local FORMAT <const> = lpeg.Ct(((1 - S "%\\") + ESCAPE + P "%%" + TEXT_CONVERSION) ^ 0) * P(-1)

local function is_number(word)
  return word == "" or word:find("^[+-]?%d+%.?%d*$") ~= nil
    or word:find("^[+-]?0[xX]%x+$") ~= nil
end

---printf whose numbers are numbers: zsh evaluates each as arithmetic, which can run commands. No
---width from an argument, no numbered argument.
---@param words string[]
---@return boolean
function M.printf_plain(words)
  local first = 1
  if words[1] == "--" then first = 2 end
  local format = words[first]
  if not format or (first == 1 and format:sub(1, 1) == "-") then return false end
  local conversions = FORMAT:match(format)
  if not conversions then return false end
  if #conversions == 0 then return true end
  for i = first + 1, #words do
    local conversion = conversions[(i - first - 1) % #conversions + 1]
    if conversion == "number" and not is_number(words[i]) then return false end
  end
  return true
end

return M
