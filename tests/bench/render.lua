-- A reply of 1 MB as rows and as bytes for a terminal, whole and in pieces of 400 bytes with what
-- is not finished drawn each time; beside it the public cmark, which makes HTML of the same text.
dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/helper.lua")
local palette = require "efr.cli.render.palette"
local prose = require "efr.cli.view.prose"
local style = require "efr.cli.view.style"

local SIZE <const> = 1 << 20
local PIECE <const> = 400

local function read(path)
  local file = assert(io.open((os.getenv("EFR_SOURCE") or ".") .. "/" .. path))
  local text = file:read("a")
  file:close()
  return text
end

local UNIT <const> = read("docs/config.md") .. read("README.md") .. read("spec/data/render/code.md")
  .. '\n"""\n```\n\n'
local TEXT <const> = UNIT:rep(SIZE // #UNIT + 1):sub(1, SIZE)
local FACE <const> = style.new {
  enabled = true, colour = true, colours = palette.colours({}, {}), hyperlinks = true,
}

local function draw(list)
  local bytes = 0
  for _, row in ipairs(list) do
    bytes = bytes + #FACE:row(row)
  end
  return bytes
end

local function seconds(fn)
  local start = os.clock()
  fn()
  return os.clock() - start
end

local whole = seconds(function()
  draw(prose.new({ hyperlinks = true }):feed({ text = TEXT, done = true }, 80))
end)

local pieces = seconds(function()
  local writer, text = prose.new({ hyperlinks = true }), TEXT:sub(1, SIZE // 8)
  for at = PIECE, #text, PIECE do
    draw(writer:feed({ text = text:sub(1, at), done = false }, 80))
    draw(writer:live_rows(80))
  end
end)

-- User and system time of cmark, as the shell counts it.
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write(TEXT)
file:close()
local pipe = assert(io.popen(
  ("bash -c 'TIMEFORMAT=\"%%U %%S\"; time cmark %s >/dev/null' 2>&1"):format(path)))
local user, system = pipe:read("a"):match("([%d.]+) ([%d.]+)")
pipe:close()
os.remove(path)

print("rendering of a reply, processor time")
print(("1 MB, whole, to bytes for a terminal        %8.0f ms"):format(whole * 1000))
print(("128 KiB in pieces of %d bytes, each drawn  %8.0f ms  %.2f ms a piece"):format(PIECE,
  pieces * 1000, pieces * 1000 / (SIZE / 8 / PIECE)))
if user then
  local cmark = tonumber(user) + tonumber(system)
  print(("cmark, 1 MB to HTML (C)                     %8.0f ms  efr / it %.0f"):format(cmark * 1000,
    whole / cmark))
else
  print("cmark is not installed: no ratio")
end
