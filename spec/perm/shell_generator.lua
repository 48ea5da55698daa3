-- Random lines of zsh's command language, for the specs of the grammar. new(seed) gives a generator;
-- the same seed gives the same lines. Commands are only the functions f, g and h of the judge, so no
-- line does anything when it runs; files are named without a slash, or are /dev/null.
local M = {}

local Gen = {}
Gen.__index = Gen

function M.new(seed)
  return setmetatable({ state = seed * 2654435761 % 4294967296 + 1, bodies = {} }, Gen)
end

-- An own generator: math.random differs between Lua versions.
function Gen:random(n)
  local x = self.state
  x = x ~ (x << 13) & 0xffffffff
  x = x ~ (x >> 17)
  x = x ~ (x << 5) & 0xffffffff
  self.state = x
  return x % n + 1
end

function Gen:pick(list)
  return list[self:random(#list)]
end

function Gen:chance(percent)
  return self:random(100) <= percent
end

local PLAIN <const> = { "a", "b", "x1", "-o", "--long=v", "1", "22", "a.b", "+x", "%1", "a,b", "@",
  "a:b", "a=b", "x]", "a!", "\xc3\xa9" }
local QUOTED <const> = { "", "a b", "a;b", "$x", "*", "a\\b", "# c", "(x)", "{a,b}", "~", "a|b", "\t",
  "`x`", "!x", "a\nb", "if", "=", "<" }
local ESCAPED <const> = { "\\ ", "\\;", "\\$", "\\*", "\\'", '\\"', "\\\\", "\\(", "\\#", "\\~", "\\a",
  "\\`", "\\{", "\\<", "\\=", "\\!" }
local DOLLAR <const> = { "a", "\\n", "\\t", "\\'", "\\\\", "\\x41", "\\101", "\\u0041", "\\e", " ",
  '"', "\\q", "$x", "\\\"" }

local function double(text)
  return '"' .. text:gsub('[$`"\\]', "\\%0") .. '"'
end

function Gen:literal_part()
  local kind = self:random(6)
  if kind <= 2 then
    return self:pick(PLAIN)
  elseif kind == 3 then
    return "'" .. self:pick(QUOTED) .. "'"
  elseif kind == 4 then
    return double(self:pick(QUOTED))
  elseif kind == 5 then
    return self:pick(ESCAPED)
  end
  local out = {}
  for i = 1, self:random(3) do
    out[i] = self:pick(DOLLAR)
  end
  return "$'" .. table.concat(out) .. "'"
end

function Gen:literal()
  local out = {}
  for i = 1, self:random(10) <= 6 and 1 or self:random(3) do
    out[i] = self:literal_part()
  end
  local word = table.concat(out)
  -- A lone = or a word that begins with one would look for a command.
  return word
end

local PARAMS <const> = { "$v", "${v}", "$#", "$?", "$1", "${v:-W}", "${(f)v}", "${v//a/W}", "${#v}",
  "${+v}", "$#v", "$v[1]", "${v[1,2]}", "${${v}}", "${v:+W}", "${v%W}", "${v##*/}", "$+v", "${=v}",
  "${~v}", "${^v}", "$^v", "${(s:,:)v}", "${(j.-.)v}", "${v:t}", "$v:h", "${(k)v}", "$$", "$@", "$*",
  "${(@)v}", "${:-W}", "${(l:3:)v}", "${v/#a/W}", "${v:1:2}", "${v-W}", "$'\\0'", "$" }
local GLOBS <const> = { "*", "a*", "?", "[ab]", "[^a]*", "*(N)", "(a|b)", "**/x", "<1-9>", "a#", "^a",
  "x~y", "*(.)", "<->", "[[:alpha:]]*", "***/x", "*.(a|b)(N)", "(#i)a", "[", "]", "a(b c)" }
local BRACES <const> = { "{a,b}", "{1..3}", "x{a,'b c'}y", "{}", "{a}", "{a,{b,c}}", "{a..c}", "{3..1}",
  "{a,b", "{01..10..3}" }
local MATHS <const> = { "1", "1 + 2", "v", "(1 + 2) * 3", "v[1]", "$v", "1 ? 2 : 3", "#v", "16#f" }

function Gen:expansion(depth)
  local kind = depth > 0 and self:random(9) or self:random(4)
  if kind <= 2 then
    return (self:pick(PARAMS):gsub("W", function() return self:literal() end))
  elseif kind == 3 then
    return "$((" .. self:pick(MATHS) .. "))"
  elseif kind == 4 then
    return "$[" .. self:pick(MATHS) .. "]"
  elseif kind <= 6 then
    return "$(" .. self:list(depth - 1, true) .. ")"
  elseif kind == 7 then
    return "`f " .. self:pick(PLAIN) .. "`"
  elseif kind == 8 then
    return "${v:-" .. self:expansion(depth - 1) .. "}"
  end
  return "${" .. self:pick { "", "(f)", "(M)" } .. self:expansion(depth - 1) .. "}"
end

function Gen:part(depth)
  local kind = self:random(10)
  if kind <= 5 then
    return self:literal_part()
  elseif kind == 6 then
    return self:expansion(depth)
  elseif kind == 7 then
    return '"' .. self:pick { "", "a ", "'" } .. self:expansion(depth) .. self:pick { "", "b c" } .. '"'
  elseif kind == 8 then
    return self:pick(GLOBS)
  elseif kind == 9 then
    return self:pick(BRACES)
  end
  return self:pick { "~", "~/a", "=f", "~u", "=", "<(f 1)", "=(f 2)", "^", "#", "!" }
end

function Gen:word(depth)
  local out = {}
  for i = 1, self:random(10) <= 6 and 1 or self:random(3) do
    out[i] = self:part(depth)
  end
  return table.concat(out)
end

function Gen:blank()
  return self:chance(90) and " " or self:pick { "  ", "\t", " \\\n", " \\\n  " }
end

local REDIRS <const> = { ">o", ">>o", "2>&1", "2>/dev/null", "<i", ">|o", ">!o", "&>o", "&>>o", ">&o",
  "<>o", "2>&-", "3<&0", "<<<w", "<<<'a b'", ">>|o", "> o", "1>o", "&>|o", ">&2", "{fd}>o" }

function Gen:redir(plain)
  if not plain and self:chance(12) then
    local tag = "E" .. self:random(9)
    local quoted = self:chance(40)
    local strip = self:chance(30)
    local body = self:pick { "", "a b\n", "$v\n", "$(f in)\n", "`f tick`\n", "a\n\tb\n", "'\n", '"\n',
      "${v:-x}\n", "a\\\nb\n", "\\$x\n" }
    self.bodies[#self.bodies + 1] = body .. (strip and "\t" or "") .. tag .. "\n"
    return "<<" .. (strip and "-" or "") .. (quoted and "'" .. tag .. "'" or tag)
  end
  return self:pick(REDIRS)
end

-- A simple command. plain: only literal words.
function Gen:simple(depth, plain)
  local out = {}
  if self:chance(10) then
    out[#out + 1] = self:pick { "v=", "w+=", "u=" } .. (plain and self:pick(PLAIN) or self:word(0))
  elseif not plain and self:chance(5) then
    out[#out + 1] = self:pick { "arr=(a b)", "arr=( 'a b'\n c )", "arr[1]=x", "arr+=(z)", "v[2]=y" }
  end
  out[#out + 1] = self:pick { "f", "g", "h", "f", "'f'", "\\g", "nocorrect f" }
  for _ = 1, self:random(4) - 1 do
    out[#out + 1] = plain and self:literal() or self:word(depth)
  end
  if self:chance(15) then
    table.insert(out, self:random(#out), self:redir(plain))
  end
  local line = out[1]
  for i = 2, #out do
    line = line .. self:blank() .. out[i]
  end
  return line
end

function Gen:condition(depth)
  local tests = { "-n a", "a = b", "a == a*", "-z $v", "a != (a|b)", "1 -lt 2", "a < b", "! -e o",
    "( -n a )", "a =~ b", "$v", "-f o", "x -nt y", "a == <1-3>" }
  local text = self:pick(tests)
  if depth > 0 and self:chance(30) then
    text = text .. self:pick { " && ", " || " } .. self:pick(tests)
  end
  return "[[ " .. text .. " ]]"
end

function Gen:compound(depth)
  local function list() return self:list(depth - 1, true) end
  local forms = {
    function() return "{ " .. list() .. "; }" end,
    function() return "( " .. list() .. " )" end,
    function() return "if f; then " .. list() .. "; fi" end,
    function() return "if g c; then " .. list() .. "; else " .. list() .. "; fi" end,
    function() return "if " .. self:condition(depth) .. "; then " .. list() .. "; elif f; then "
      .. list() .. "; fi" end,
    function() return "if [[ -n a ]] { " .. list() .. " } else { " .. list() .. " }" end,
    function() return "for i in " .. self:word(0) .. " " .. self:word(0) .. "; do " .. list()
      .. "; done" end,
    function() return "for i (a 'b c') " .. self:simple(depth - 1) end,
    function() return "for i in a b; { " .. list() .. " }" end,
    function() return "for ((k = 0; k < 2; k++)); do " .. list() .. "; done" end,
    function() return "for i j in a b c\ndo\n" .. list() .. "\ndone" end,
    function() return "foreach i (a b)\n" .. list() .. "\nend" end,
    function() return "while g no; do " .. list() .. "; done" end,
    function() return "until f; do " .. list() .. "; done" end,
    function() return "while [[ -z a ]] { " .. list() .. " }" end,
    function() return "repeat 2 " .. self:simple(depth - 1) end,
    function() return "repeat 2; do " .. list() .. "; done" end,
    function() return "case " .. self:word(0) .. " in (a|b) " .. list() .. ";; x*) " .. list()
      .. ";& *) " .. list() .. " ;; esac" end,
    function() return "case a in\n a | b ) " .. list() .. "\n;;\n( 'c d' ) " .. list()
      .. ";|\nesac" end,
    function() return "case x { (*) " .. list() .. " }" end,
    function() return self:condition(depth) end,
    function() return "(( " .. self:pick(MATHS) .. " ))" end,
    function() return "{ " .. list() .. " } always { " .. list() .. " }" end,
    function() return "n1() { " .. list() .. "; }" end,
    function() return "function n2 { " .. list() .. " }" end,
    function() return "n3 () f body" end,
    function() return "() { " .. list() .. " } a 'b c'" end,
    function() return "function n4 n5 () { f 1 }; n5" end,
    function() return "time f 1" end,
    function() return "local v='a b' arr=(x 'y z'); f $arr" end,
    function() return "if (f) f then" end,
    function() return "f 1 | { " .. list() .. " }" end,
  }
  return self:pick(forms)()
end

function Gen:command(depth, plain)
  if plain or depth <= 0 or self:chance(70) then
    return self:simple(depth, plain)
  end
  local text = self:compound(depth)
  if self:chance(10) and not text:find("^%S+%(%)") then
    text = text .. " >o"
  end
  return text
end

local JOINS <const> = { "; ", " && ", ";", " | ", " || ", "\n", " &\n", " |& ", " & ", ";\n", " &| " }
local PLAIN_JOINS <const> = { "; ", " && ", ";", "\n", " ;\n\n", "&&", " && \\\n", " # c ' \" (\n" }

-- Commands joined. inner: where here-documents and `}` of the surroundings must not break it.
function Gen:list(depth, inner)
  local saved = self.bodies
  self.bodies = {}
  local text = self:command(depth)
  for _ = 1, self:random(3) - 1 do
    text = text .. self:pick(JOINS)
    if text:sub(-1) == "\n" then
      text = self:flush(text)
    end
    if self:chance(8) then
      text = text .. "! "
    end
    text = text .. self:command(depth)
  end
  if inner and self.bodies[1] then
    text = self:flush(text .. "\n")
  end
  if inner then
    self.bodies = saved
  end
  return text
end

function Gen:flush(text)
  text = text .. table.concat(self.bodies)
  self.bodies = {}
  return text
end

---A line of every construct.
function Gen:line()
  self.bodies = {}
  local text = self:list(2)
  if self.bodies[1] then
    text = self:flush(text .. "\n")
  end
  return text
end

---A line of literal words whose commands all run: joined by ; && and newlines.
function Gen:plain_line()
  local text = self:command(0, true)
  for _ = 1, self:random(3) - 1 do
    text = text .. self:pick(PLAIN_JOINS) .. self:command(0, true)
  end
  return text .. self:pick { "", "", "\n", " # end", ";" }
end

local NOISE <const> = { "'", '"', "`", "$", "(", ")", "{", "}", "[", "]", "<", ">", "&", "|", ";", "\\",
  "\n", " ", "#", "=", "~", "*", "!", "a", "-", "1", "\\\n", "$(", "${", "((", "))", "<(", "=(", "<<E" }

---A line with a few random changes.
function Gen:mutate(line)
  for _ = 1, self:random(3) do
    local at = self:random(#line + 1)
    local kind = self:random(3)
    if kind == 1 then
      line = line:sub(1, at - 1) .. self:pick(NOISE) .. line:sub(at)
    elseif kind == 2 then
      line = line:sub(1, at - 1) .. line:sub(at + self:random(2))
    else
      local from = self:random(#line + 1)
      line = line:sub(1, at - 1) .. line:sub(from, from + self:random(12)) .. line:sub(at)
    end
  end
  return line
end

return M
