-- Lines of code as spans with the roles of their tokens; a diff in its own roles.
-- Owns: which lexer reads which language, the label above a block. Must not know: markdown's
-- blocks, colours. Pure. Lexers are found by folder: cli/render/lexers/NAME.lua.

local rows = require "efr.cli.view.rows"

local M = {}

local LINE_MAX <const> = 4096 -- a longer line is shown without colours
local QUIET <const> = { text = true, txt = true, plain = true, plaintext = true }
local DIFF <const> = { diff = true, patch = true, udiff = true }

-- Other names of the lexers.
local ALIASES <const> = {
  bash = "sh", shell = "sh", zsh = "sh", console = "sh", ["shell-session"] = "sh", ksh = "sh",
  py = "python", python3 = "python", h = "c", cpp = "c", ["c++"] = "c", cc = "c", hpp = "c",
  cxx = "c", java = "c", cs = "c", csharp = "c", js = "javascript", jsx = "javascript",
  ts = "javascript", tsx = "javascript", typescript = "javascript", mjs = "javascript",
  jsonc = "json", json5 = "json", yml = "yaml", ini = "toml", conf = "toml", cfg = "toml",
  rs = "rust", golang = "go", xml = "html", svg = "html", htm = "html", mysql = "sql",
  sqlite = "sql", postgresql = "sql", makefile = "make", mk = "make", docker = "dockerfile",
  kt = "c", kotlin = "c", swift = "c", rb = "ruby",
}

--- What a fence's info says: the language and the label to show.
--- @param info string
--- @return string language, string? label
function M.info(info)
  local language = info:match("^[^%s{]+") or ""
  local rest = info:sub(#language + 1)
  local file = rest:match('title="([^"]*)"') or rest:match("file=\"?([^%s\"]+)")
    or rest:match("^%s+([^%s={}]+)%s*$")
  language = language:lower()
  if file and file ~= "" then
    return language, file
  end
  if language == "" or QUIET[language] or DIFF[language] then
    return language, nil
  end
  return language, language
end

--- The language of a file by its name.
function M.language_of(file)
  local name = file:match("([^/]*)$"):lower()
  if name:find("^makefile") or name:find("^dockerfile") then
    return name:match("^%a+")
  end
  return name:match("%.([%w+]+)$") or ""
end

local loaded = {}

local function lexer(language)
  local name = ALIASES[language] or language
  if loaded[name] == nil then
    local found, module = false, nil
    if name:find("^%l+$") then
      found, module = pcall(require, "efr.cli.render.lexers." .. name)
    end
    loaded[name] = found and module or false
  end
  return loaded[name] or nil
end

local Painter = {}
Painter.__index = Painter

--- @param language string
function M.painter(language)
  local self = { lexer = lexer(language), is_diff = DIFF[language] or false }
  return setmetatable(self, Painter)
end

local function diff_line(self, line)
  local file = line:match("^%+%+%+ b?/?([^\t]+)")
  if file then
    self.lexer = lexer(M.language_of(file))
  end
  if line:find("^%+%+%+ ") or line:find("^%-%-%- ") or line:find("^diff ") or line:find("^index ")
  then
    return { { line, "bold" } }
  elseif line:find("^@@") then
    return { { line, "hunk" } }
  end
  local sign = line:sub(1, 1)
  local role = sign == "+" and "add" or sign == "-" and "remove"
  if not role then
    return { { line } }
  end
  local row = { { sign, role, M.BOLD } }
  local rest = line:sub(2)
  if self.lexer then
    self.state = nil -- the lines of both sides are mixed: each stands for itself
    local more = self:tokens(rest)
    return table.move(more, 1, #more, 2, row)
  end
  row[2] = rest ~= "" and { rest, role } or nil
  return row
end

M.BOLD = { bold = true } ---@type table

--- The spans of a line by its tokens.
function Painter:tokens(line)
  if not self.lexer or #line > LINE_MAX then
    return line ~= "" and { { line } } or {}
  end
  local row
  row, self.state = self.lexer.line(line, self.state)
  return row
end

--- The spans of the next line of a block.
--- @param line string  bytes without a newline
--- @return table row
function Painter:line(line)
  line = rows.safe(line)
  if self.is_diff then
    return diff_line(self, line)
  end
  return self:tokens(line)
end

return M
