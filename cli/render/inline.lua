-- Text inside a block as spans: emphasis, code, links, addresses.
-- Owns: the inline syntax (CommonMark 0.31, GitHub's strikethrough and bare addresses).
-- Must not know: blocks, columns, colours. Pure; the steps grow with the length of the text.
-- The text may hold newlines; in the spans they stand as "\n" pieces of their own.

local links = require "efr.cli.render.links"
local rows = require "efr.cli.view.rows"

local M = {}

local TARGET_MAX <const> = 1024 -- bytes looked at for the end of a link's target

local ENTITIES <const> = {
  amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", nbsp = "\u{A0}", copy = "©",
  hellip = "…", mdash = "—", ndash = "–", larr = "←", rarr = "→", times = "×", middot = "·",
  bull = "•",
}

-- ---- nodes: {text, role?, code?, link?}; runs {run=, char=, can_open, can_close} ----

local Scan = {}
Scan.__index = Scan

local function add(scan, s)
  local last = scan.nodes[#scan.nodes]
  if last and not last.run and not last.role and not last.bracket and not last.fixed then
    last[#last + 1] = s
  else
    scan.nodes[#scan.nodes + 1] = { s }
  end
end

-- Runs of backticks by their length, in their order: a code span is closed by the next of its own
-- length, and looking for it must not read the text again.
local function backtick_runs(s)
  local by_length, at = {}, 1
  while true do
    local from, to = s:find("`+", at)
    if not from then
      return by_length
    end
    local list = by_length[to - from + 1] or { next = 1 }
    by_length[to - from + 1] = list
    list[#list + 1] = from
    at = to + 1
  end
end

local read = {}

read["`"] = function(scan, i)
  local _, stop = scan.s:find("^`+", i)
  local length = stop - i + 1
  scan.ticks = scan.ticks or backtick_runs(scan.s)
  local list = scan.ticks[length]
  while list[list.next] and list[list.next] <= i do
    list.next = list.next + 1
  end
  local close = list[list.next]
  if not close then
    add(scan, scan.s:sub(i, stop))
    return stop + 1
  end
  local code = scan.s:sub(stop + 1, close - 1):gsub("\n", " ")
  if code:find("^ .* $") and code:find("[^ ]") then
    code = code:sub(2, -2)
  end
  local path = links.is_path(code) and code or nil
  scan.nodes[#scan.nodes + 1] = { code, role = "code", link = path and links.target(path) }
  return close + length
end

read["\\"] = function(scan, i)
  local next_char = scan.s:sub(i + 1, i + 1)
  if next_char:find("^%p$") then
    add(scan, next_char)
    return i + 2
  end
  if next_char ~= "\n" then
    add(scan, "\\")
  end
  return i + 1
end

read["&"] = function(scan, i)
  local name = scan.s:match("^&(%a%w?%w?%w?%w?%w?%w?);", i)
  if name and ENTITIES[name] then
    add(scan, ENTITIES[name])
    return i + #name + 2
  end
  local hex, number = scan.s:match("^&#([xX]?)(%x%x?%x?%x?%x?%x?);", i)
  local code = number and tonumber(number, hex ~= "" and 16 or 10)
  if code and code <= 0x10FFFF and not (code >= 0xD800 and code < 0xE000) then
    add(scan, rows.safe(code == 0 and "\u{FFFD}" or utf8.char(code)))
    return i + #hex + #number + 3
  end
  add(scan, "&")
  return i + 1
end

read["<"] = function(scan, i)
  local inner = scan.s:match("^[^<>\n]+>", i + 1)
  if not inner then
    add(scan, "<")
    return i + 1
  end
  local body = inner:sub(1, -2)
  local mail = body:find("^[%w.!#$%%&'*+/=?^_{|}~-]+@[%w.-]+$") and "mailto:" .. body
  if mail or body:find("^%a[%w+.-]+:%S*$") then
    local target = links.target(mail or body)
    scan.nodes[#scan.nodes + 1] = { body, role = target and "link", link = target, fixed = true }
  elseif body:find("^/?%a[%w-]*%f[%s/\0]") or body:find("^!%-%-") then
    scan.nodes[#scan.nodes + 1] = { "<" .. inner, role = "muted" }
  else
    add(scan, "<")
    return i + 1
  end
  return i + #inner + 1
end

local function is_space(c)
  return c == "" or c:find("^%s") ~= nil or c == "\u{A0}"
end

local function is_punctuation(c)
  return c:find("^%p$") ~= nil or c:find("^\u{2010}") ~= nil or c == "…" or c == "“" or c == "”"
end

-- The characters before byte i and after byte j.
local function around(s, i, j)
  local before = s:sub(math.max(i - 4, 1), i - 1):match("[^\x80-\xBF][\x80-\xBF]*$") or ""
  local after = s:sub(j + 1, j + 4):match("^[^\x80-\xBF][\x80-\xBF]*") or ""
  return before, after
end

-- A run of `*`, `_` or `~`, with what it may do (CommonMark 6.2).
local function read_run(scan, i)
  local char = scan.s:sub(i, i)
  local _, stop = scan.s:find("^%" .. char .. "+", i)
  local before, after = around(scan.s, i, stop)
  local left = not is_space(after)
    and (not is_punctuation(after) or is_space(before) or is_punctuation(before))
  local right = not is_space(before)
    and (not is_punctuation(before) or is_space(after) or is_punctuation(after))
  local run = { run = stop - i + 1, char = char, can_open = left, can_close = right }
  if char == "_" then
    run.can_open = left and (not right or is_punctuation(before))
    run.can_close = right and (not left or is_punctuation(after))
  elseif char == "~" and run.run ~= 2 then
    run.can_open, run.can_close = false, false
  end
  run.length = run.run
  scan.nodes[#scan.nodes + 1] = run
  return stop + 1
end

read["*"], read["_"], read["~"] = read_run, read_run, read_run

read["["] = function(scan, i, image)
  local node = { image and "![" or "[", bracket = true, image = image }
  scan.nodes[#scan.nodes + 1] = node
  scan.brackets[#scan.brackets + 1] = { at = #scan.nodes, image = image }
  return i + 1
end

read["!"] = function(scan, i)
  if scan.s:sub(i + 1, i + 1) == "[" then
    return read["["](scan, i + 1, true)
  end
  add(scan, "!")
  return i + 1
end

-- `(target "title")` at byte i; the byte after it and the target.
local function link_target(s, i)
  local part = s:sub(i, i + TARGET_MAX)
  local target, stop = part:match("^%(%s*<([^<>\n]*)>()")
  if not target then
    target, stop = part:match("^%(%s*([^%s()<>]*)()")
    -- One level of parentheses in a target is common: /wiki/Lua_(language).
    while target and part:find("^%([^%s()]*%)[^%s()]*", stop) do
      local more, after = part:match("^(%([^%s()]*%)[^%s()]*)()", stop)
      target, stop = target .. more, after
    end
  end
  if not target then
    return nil
  end
  local close = part:match("^%s*%)()", stop) or part:match('^%s+"[^"]*"%s*%)()', stop)
    or part:match("^%s+'[^']*'%s*%)()", stop)
  if not close then
    return nil
  end
  return i + close - 1, target:gsub("\\(%p)", "%1")
end

local function plain(nodes, from)
  local out = {}
  for k = from, #nodes do
    local node = nodes[k]
    out[#out + 1] = node.run and node.char:rep(node.length) or table.concat(node)
  end
  return table.concat(out)
end

local emphasize

read["]"] = function(scan, i)
  local open = table.remove(scan.brackets)
  if not open then
    add(scan, "]")
    return i + 1
  end
  local after, target = link_target(scan.s, i + 1)
  if not after or open.inactive and not open.image then
    scan.nodes[#scan.nodes + 1] = { "]", fixed = true }
    return i + 1
  end
  emphasize(scan.nodes, open.at + 1)
  if open.image then
    local alt = plain(scan.nodes, open.at + 1)
    for k = #scan.nodes, open.at, -1 do
      scan.nodes[k] = nil
    end
    scan.nodes[open.at] = { "[image: " .. alt .. "]", role = "muted", link = links.target(target) }
    return after
  end
  for k = #scan.brackets, 1, -1 do -- no link inside a link
    if scan.brackets[k].inactive then
      break
    end
    scan.brackets[k].inactive = true
  end
  scan.nodes[open.at] = { "", link_open = true, target = target, fixed = true }
  scan.nodes[#scan.nodes + 1] = { "", link_close = true, fixed = true }
  return after
end

read["h"] = function(scan, i)
  local before = i > 1 and scan.s:sub(i - 1, i - 1) or " "
  local url = not before:find("[%w_]") and links.bare(scan.s, i)
  if not url then
    add(scan, "h")
    return i + 1
  end
  scan.nodes[#scan.nodes + 1] = { url, role = "link", link = links.target(url), fixed = true }
  return i + #url
end

-- ---- emphasis ----

local LOOK <const> = { ["*"] = { "italic", "bold" }, ["_"] = { "italic", "bold" },
  ["~"] = { "strike", "strike" } }

-- The run that opens what `closer` closes, above `floor`.
local function opener_of(stack, closer, floor)
  for k = #stack, floor + 1, -1 do
    local run = stack[k]
    if run.char == closer.char then
      local odd = (run.can_close or closer.can_open) and (run.length + closer.length) % 3 == 0
        and not (run.length % 3 == 0 and closer.length % 3 == 0)
      if not odd or closer.char == "~" then
        return k
      end
    end
  end
  return nil
end

local function pair(opener, closer)
  local count = opener.run >= 2 and closer.run >= 2 and 2 or 1
  local field = LOOK[closer.char][count]
  opener.run, closer.run = opener.run - count, closer.run - count
  opener.opens, closer.closes = opener.opens or {}, closer.closes or {}
  table.insert(opener.opens, field)
  table.insert(closer.closes, field)
end

-- Takes the runs above `height` off the stack: they stay text.
local function drop(stack, floors, height)
  for k = #stack, height + 1, -1 do
    stack[k] = nil
  end
  for key, floor in pairs(floors) do
    floors[key] = math.min(floor, height)
  end
end

-- Pairs the runs from node `first` on. Below its floor nothing opens a kind of closer; that keeps
-- the steps in proportion to the number of runs.
function emphasize(nodes, first)
  local stack, floors = {}, {}
  for k = first, #nodes do
    local run = nodes[k]
    local live = run.run and not run.paired
    while live and run.can_close and run.run > 0 do
      local key = run.char .. run.length % 3 .. tostring(run.can_open)
      local at = opener_of(stack, run, floors[key] or 0)
      if not at then
        floors[key] = #stack
        break
      end
      pair(stack[at], run)
      drop(stack, floors, stack[at].run > 0 and at or at - 1)
    end
    if live and run.can_open and run.run > 0 then
      stack[#stack + 1] = run
    end
    run.paired = true
  end
end

-- ---- nodes to spans ----

local Out = {}
Out.__index = Out

-- The look of what is open now; one table while nothing changes, so that pieces can be joined.
function Out:look(link)
  if self.known and self.known_link == link then
    return self.known_look
  end
  local key = link or ""
  for _, field in ipairs({ "bold", "italic", "strike" }) do
    key = key .. "\0" .. ((self.depth[field] or 0) > 0 and field or "")
  end
  if not self.looks[key] then
    local look = {}
    for field, count in pairs(self.depth) do
      look[field] = count > 0 or nil
    end
    look.link = link
    self.looks[key] = next(look) and look or false
  end
  self.known, self.known_link, self.known_look = true, link, self.looks[key] or nil
  return self.known_look
end

function Out:put(s, role, link)
  local from = 1
  link = link or self.link
  if self.in_link then
    role = role or "link"
    table.insert(self.in_link.shown, s)
  end
  while true do
    local newline = s:find("\n", from, true)
    self:piece(s:sub(from, (newline or 0) - 1), role or self.role, self:look(link))
    if not newline then
      return
    end
    self:flush()
    self.row[#self.row + 1] = { "\n" }
    from = newline + 1
  end
end

-- Pieces that look alike become one span; they wait in a list, so that many of them cost no more
-- than their bytes.
function Out:piece(s, role, look)
  if role ~= self.last_role or look ~= self.last_look then
    self:flush()
  end
  self.last_role, self.last_look = role, look
  self.pieces[#self.pieces + 1] = s
end

function Out:flush()
  local s = table.concat(self.pieces)
  if s ~= "" then
    self.row[#self.row + 1] = { s, self.last_role, self.last_look }
  end
  self.pieces = {}
end

function Out:shift(fields, by)
  self.known = false
  for _, field in ipairs(fields or {}) do
    self.depth[field] = (self.depth[field] or 0) + by
  end
end

-- After a link: the target where the terminal has no link to show it.
function Out:end_link()
  local open = self.in_link
  self.in_link, self.link = nil, nil
  local differs = table.concat(open.shown) ~= open.target
  if open.target ~= "" and not open.linked and differs then
    self:put(" (" .. rows.safe(open.target) .. ")", "muted")
  end
end

function Out:node(node)
  if node.run then
    self:shift(node.closes, -1)
    self:put(node.char:rep(node.run))
    self:shift(node.opens, 1)
  elseif node.link_open then
    local target = links.target(node.target)
    self.in_link = { target = node.target, linked = target and self.hyperlinks, shown = {} }
    self.link = self.hyperlinks and target or nil
  elseif node.link_close then
    self:end_link()
  else
    local s = table.concat(node)
    if node.role == "code" and self.ticks then
      s = "`" .. s .. "`"
    end
    self:put(s, node.role, self.hyperlinks and node.link or nil)
  end
end

--- The spans of safe text (no control character but newlines).
--- @param s string
--- @param opts {hyperlinks: boolean, ticks: boolean, role: string?, look: table?} ticks: code
---   shows its backticks; role and look: of text without a role of its own
--- @return table row  with {"\n"} where a line ends
function M.spans(s, opts)
  local scan = setmetatable({ s = s, nodes = {}, brackets = {} }, Scan)
  local i = 1
  while i <= #s do
    local stop = s:find("[`\\&<*_~%[%]!h]", i) or #s + 1
    if stop > i then
      add(scan, s:sub(i, stop - 1))
    end
    if stop > #s then
      break
    end
    i = read[s:sub(stop, stop)](scan, stop)
  end
  emphasize(scan.nodes, 1)
  local out = setmetatable({
    row = {}, pieces = {}, looks = {}, depth = {}, role = opts.role, hyperlinks = opts.hyperlinks,
    ticks = opts.ticks,
  }, Out)
  for field in pairs(opts.look or {}) do
    out.depth[field] = 1
  end
  for _, node in ipairs(scan.nodes) do
    out:node(node)
  end
  out:flush()
  return out.row
end

return M
