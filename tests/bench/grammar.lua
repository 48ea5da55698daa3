-- The parse of a shell line: microseconds for 20, 200, 2,000 and 64,000 bytes of ordinary commands,
-- and lines of 64 KiB that hold as much as one may. Beside it public parsers; tree-sitter's bash
-- grammar where EFR_BENCH_NODE_MODULES names a directory with its npm packages (tree_sitter.mjs).
dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/helper.lua")
local shell = require "efr.perm.shell"

local UNIT <const> = [[cd ~/p/app && git log --oneline -n 20 -- "src/$x" | head -n 5; ]]
  .. [[for f in a b; do echo "$f: $(wc -l < $f)" 2>/dev/null; done; ls -la **/*.lua(.) > out.txt; ]]
  .. "grep -rn 'foo bar' lua/ spec/ || true\n"
local TEXT <const> = "cat > notes.txt <<'END'\n"
  .. ("a line of a text that a model writes to a file\n"):rep(1330) .. "END\n"

local function median(times, line)
  local samples = {}
  for i = 1, times do
    local start = os.clock()
    shell.parse(line)
    samples[i] = (os.clock() - start) * 1e6
  end
  table.sort(samples)
  return samples[(times + 1) // 2]
end

local function row(name, line, times)
  local us = median(times, line)
  local tree, why = shell.parse(line)
  print(("%-44s %7d bytes %10.1f us %8.0f ns/byte  %s"):format(name, #line, us, us * 1000 / #line,
    tree and "" or "opaque: " .. why))
end

print("the grammar of the shell")
row("one command", "ls -la /usr/share/do", 2000)
row("ordinary commands", UNIT, 1000)
row("ordinary commands", UNIT:rep(10), 100)
row("ordinary commands", UNIT:rep(64000 // #UNIT), 9)
row("a here-document", TEXT, 100)
for _, unit in ipairs { "a;", "*a", "$x ", "`a` ", "[[ a = b ]];", "a | ", "((1));", "{a,b}" } do
  row("64 KiB of " .. unit, unit:rep(65536 // #unit), 5)
end

-- Beside public parsers: the same lines in a file, user and system time of the whole program.
local COMMON <const> = [[cd ~/p/app && git log --oneline -n 20 -- "src/$x" | head -n 5; ]]
  .. [[for f in a b; do echo "$f: $(wc -l < $f)" 2>/dev/null; done; ]]
  .. [[grep -rn 'foo bar' lua/ spec/ || true]]
local LINES <const> = 4000

local function cpu_us(command)
  local timed = "bash -c 'TIMEFORMAT=\"%U %S\"; time " .. command .. " >/dev/null' 2>&1"
  local pipe = assert(io.popen(timed))
  local user, system = pipe:read("a"):match("([%d.]+) ([%d.]+)%s*$")
  pipe:close()
  return (tonumber(user) + tonumber(system)) * 1e6 / LINES
end

local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write((COMMON .. "\n"):rep(LINES))
file:close()
local ours = median(1000, COMMON)
print(("%d lines of %d bytes, microseconds a line"):format(LINES, #COMMON))
print(("  %-24s %8.1f"):format("efr, with its tree", ours))
local PARSERS <const> = {
  "bash -n ", "zsh -n ", "shfmt -ln bash -tojson < ", "shfmt -ln bash -l ",
}
for _, command in ipairs(PARSERS) do
  local theirs = cpu_us(command .. path)
  local name = command:gsub(" <? ?$", "")
  print(("  %-24s %8.1f   efr / it %.2f"):format(name, theirs, ours / theirs))
end

-- In one process for all lines, as ours. No package of Debian has it, so where npm's is shown.
local modules = os.getenv("EFR_BENCH_NODE_MODULES")
if modules then
  local script = (os.getenv("EFR_SOURCE") or ".") .. "/tests/bench/tree_sitter.mjs"
  local pipe = assert(io.popen(("node '%s' '%s' '%s'"):format(script, modules, path)))
  local theirs = assert(tonumber(pipe:read("a")), "tree_sitter.mjs gave no time")
  pipe:close()
  print(("  %-24s %8.1f   efr / it %.2f"):format("tree-sitter-bash (wasm)", theirs, ours / theirs))
end
os.remove(path)
