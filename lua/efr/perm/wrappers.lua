-- Owns: programs that run another program, and where the inner command starts in their words.
-- Must not know: what any program does, or how a line is read.
-- Runs in efrd, on the loop thread. Pure, and linear in the words.
--
-- Words are those of efr.perm.lenient: {text?, shape, ...}; text is nil when it is not known.

local list = require "efr.util.list"
local text = require "efr.util.text"

local M = {}

-- values: options whose value is the next word; skip: leading words that are no command; assigns:
-- NAME=value words may stand before the command; shell: an option whose value is a line of a
-- shell; joined: all words together are a line of a shell.
local function wrapper(values, more)
  local out = more or {}
  out.values = list.set(text.split(values, " "))
  return out
end

local TABLE <const> = {
  env = wrapper("-u --unset -C --chdir -S --split-string", { assigns = true,
    lines = list.set { "-S", "--split-string" }, moves = list.set { "-C", "--chdir" } }),
  nice = wrapper "-n --adjustment",
  nohup = wrapper "",
  time = wrapper "-f --format -o --output",
  timeout = wrapper("-s --signal -k --kill-after", { skip = 1 }),
  command = wrapper("", { lookups = list.set { "-v", "-V" } }),
  builtin = wrapper "",
  exec = wrapper "-a",
  stdbuf = wrapper "-i -o -e --input --output --error",
  ionice = wrapper "-c -n -p -P -u --class --classdata --pid --pgid --uid",
  chrt = wrapper("-T -P -D --sched-runtime --sched-period --sched-deadline", { skip = 1 }),
  taskset = wrapper("", { skip = 1 }),
  setsid = wrapper "",
  flock = wrapper("-w --wait --timeout -E --conflict-exit-code -c --command",
    { skip = 1, lines = list.set { "-c", "--command" } }),
  xargs = wrapper("-a -d -E -I -L -n -P -s --arg-file --delimiter --replace --max-lines "
    .. "--max-args --max-procs --max-chars --process-slot-var"),
  watch = wrapper("-n --interval -q --equexit", { joined = true }),
  unbuffer = wrapper "",
  noglob = wrapper "",
  nocorrect = wrapper "",
  ["-"] = wrapper "",
  sudo = wrapper("-u -g -h -p -C -D -r -t -T -U -R --user --group --host --prompt --close-from "
    .. "--chdir --role --type --command-timeout --other-user --chroot",
    { assigns = true, moves = list.set { "-D", "--chdir" } }),
  doas = wrapper "-u -C",
  run0 = wrapper("-u -g -D --user --group --unit --property --chdir --nice --setenv --slice "
    .. "--description --background", { moves = list.set { "-D", "--chdir" } }),
  pkexec = wrapper "--user",
  -- Not in the specification's table; one program too many is no harm.
  unshare = wrapper "-S -G -R -w --setuid --setgid --root --wd --propagation --setgroups",
  nsenter = wrapper "-t -S -G --target --setuid --setgid",
  prlimit = wrapper "-p --pid",
  setarch = wrapper("", { skip = 1 }),
  chroot = wrapper("", { skip = 1 }),
  strace = wrapper "-a -b -e -E -I -o -O -p -P -s -S -u -U -X",
  ltrace = wrapper "-a -A -e -F -l -n -o -p -s -u -w -x",
  ["systemd-inhibit"] = wrapper "",
  ["dbus-run-session"] = wrapper "--config-file --dbus-daemon",
  busybox = wrapper "",
  faketime = wrapper("-f", { skip = 1 }),
  catchsegv = wrapper "",
  torsocks = wrapper "",
  proxychains = wrapper "-f",
  proxychains4 = wrapper "-f",
  firejail = wrapper "",
  su = wrapper("-c --command -s --shell -g --group -G --supp-group -w",
    { skip = math.huge, lines = list.set { "-c", "--command" } }),
  script = wrapper("-c --command -E --echo -I -O -B -m -o -T -t",
    { skip = math.huge, lines = list.set { "-c", "--command" } }),
  sh = wrapper("-o -O --rcfile --init-file", { skip = math.huge, shell = true }),
}
for _, name in ipairs { "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "rzsh", "fish" } do
  TABLE[name] = TABLE.sh
end
for _, name in ipairs { "linux32", "linux64", "i386", "x86_64" } do
  TABLE[name] = wrapper ""
end

---@class efr.Peeled
---@field start integer?  the place of the inner command's program
---@field line integer?  the place of a word that is a line of a shell
---@field attached string?  such a line, written in the word of its option
---@field joined integer?  from here on all words together are a line
---@field moved boolean?  the inner command starts in another directory

---Whether a program is a wrapper.
---@param name string?
---@return boolean
function M.is_wrapper(name)
  return name ~= nil and TABLE[name] ~= nil
end

local function is_assignment(word)
  return word.shape:find("^[%a_][%w_]*%+?=") ~= nil
end

-- Where the value of an option stands: its word, or the text behind it in the same word.
local function value_of(spec, word)
  local shape = word.shape
  local name, value = shape:match("^(%-%-[^=]+)=(.*)$")
  if name then return name, value end
  if shape:sub(1, 2) == "--" then return shape, nil end
  -- A cluster: the first letter that takes a value takes the rest, or the next word.
  for i = 2, #shape do
    local option = "-" .. shape:sub(i, i)
    if spec.values[option] then
      return option, i < #shape and shape:sub(i + 1) or nil
    end
  end
  return shape, nil
end

-- The full name of an abbreviated long option that takes a value.
local function full_name(spec, name)
  if spec.values[name] or name:sub(1, 2) ~= "--" or #name < 4 then return name end
  for long in pairs(spec.values) do
    if long:sub(1, #name) == name then return long end
  end
  return name
end

-- One option. Returns the place behind it.
local function option(spec, words, i, out)
  local word = words[i]
  if spec.lookups and spec.lookups[word.text] then
    out.lookup = true
    return i + 1
  end
  if spec.shell and word.shape:find("^[-+]%a*c%a*$") then
    out.shell_line = true
    return i + 1
  end
  local name, value = value_of(spec, word)
  name = full_name(spec, name)
  local takes = spec.values[name]
  if spec.moves and spec.moves[name] then out.moved = true end
  if spec.lines and spec.lines[name] then
    if value then out.attached = value else out.line = i + 1 end
  end
  return takes and not value and i + 2 or i + 1
end

local function is_option(word)
  return word.shape:find("^[-+].") ~= nil and not word.shape:find("^%+[%d]")
end

-- The first word behind options, assignments and leading words.
local function skip_options(spec, words, out)
  local i, left, ended = 2, spec.skip or 0, false
  while words[i] do
    local word = words[i]
    if not ended and word.text == "--" then
      ended = true
      i = i + 1
    elseif not ended and is_option(word) then
      i = option(spec, words, i, out)
    elseif spec.assigns and is_assignment(word) then
      i = i + 1
    elseif out.shell_line then
      out.line = i
      return nil
    elseif left > 0 then
      left = left - 1
      i = i + 1
    else
      return i
    end
  end
  return nil
end

---Where a wrapper's command starts.
---@param name string  of the wrapper, without a directory
---@param words table[]  all words of the command, with the wrapper first
---@return efr.Peeled peeled
function M.peel(name, words)
  local spec, out = TABLE[name], {}
  local start = skip_options(spec, words, out)
  if not out.lookup then
    out.start = start
    if spec.joined then out.joined = start end
  end
  return out
end

return M
