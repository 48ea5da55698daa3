-- Owns: taking secrets out of text that is logged, indexed or shown to a model as live state.
-- Must not know: where the text comes from.
-- Runs in every Lua state of efr. Pure.
--
-- Policy: what looks like a secret becomes [redacted]: values of secret-like assignments, keys with
-- a well-known prefix, passwords in URLs, values of Authorization and Cookie headers, and password
-- options of some programs. A value that is only a variable reference ($TOKEN) stays, because it
-- tells nothing. The scan is one pass with no going back over a word, so it is linear.

local lpeg = require "lpeg"
local lpegx = require "efr.util.lpegx"

local M = {}

local C, Cmt, Cs, P, R, S = lpeg.C, lpeg.Cmt, lpeg.Cs, lpeg.P, lpeg.R, lpeg.S

local MASK <const> = "[redacted]"

local SECRET_ENDS <const> = {
  "TOKEN$", "SECRET$", "PASSWORD$", "PASSWD$", "PASSPHRASE$", "APIKEY$", "^CREDENTIALS?$",
  "^PAT$", "^AUTH$", "^AUTHORIZATION$", "^COOKIE$",
}
-- TOKEN_COUNT and the like are settings, not secrets.
local HARMLESS_LAST <const> = {
  COUNT = true, LIMIT = true, SIZE = true, LENGTH = true, TYPE = true, NAME = true, URL = true,
  FILE = true, PATH = true, DIR = true, TTL = true,
}

local function is_secret_name(name)
  name = name:upper():gsub("-", "_")
  if HARMLESS_LAST[name:match("[^_]*$")] then return false end
  if name:find("_KEY$") or name:find("_KEY_ID$") then return true end
  for word in name:gmatch("[^_]+") do
    for _, pattern in ipairs(SECRET_ENDS) do
      if word:find(pattern) then return true end
    end
  end
  return false
end

local function is_reference(value)
  return value:find("^[\"']?%$[%w_]+[\"']?$") or value:find("^[\"']?%${[%w_]+}[\"']?$")
end

local function masked(value)
  if value == "" or is_reference(value) then return value end
  local quote = value:match("^[\"']") or ""
  return quote .. MASK .. quote
end

local alnum = R("az", "AZ", "09")
local name_char = alnum + S "_-"
local name = (R("az", "AZ") + "_") * name_char ^ 0
local quoted = '"' * (1 - S '"\n') ^ 0 * P '"' ^ -1 + "'" * (1 - S "'\n") ^ 0 * P "'" ^ -1
local value = quoted + (1 - S " \t\r\n;&|\"'<>") ^ 1
local blank = S " \t"

local function is_secret(_, i, word)
  return is_secret_name(word) and i
end
local secret_name = Cmt(C(name), is_secret) / 0

local assignment = secret_name * "=" * (value / masked)
local json = '"' * secret_name * '"' * blank ^ 0 * ":" * blank ^ 0 * (quoted / masked)
local long_option = "--" * secret_name * blank ^ 1 * ((value - P "-") / masked)

local scheme = alnum * (alnum + S "+.-") ^ 0 * "://"
local url = scheme * (1 - S " \t\r\n/:@\"'") ^ 0 * ":" * ((1 - S " \t\r\n/@\"'") ^ 1 / masked) * "@"

local function header_value(text)
  local kind, rest = text:match("^(%a+%s+)(%$.*)$")
  if is_reference(rest or text) then return text end
  return (kind and rest and kind or "") .. MASK
end
local header_name = lpegx.nocase "authorization" + lpegx.nocase "proxy-authorization" +
  lpegx.nocase "set-cookie" + lpegx.nocase "cookie" + lpegx.nocase "x-api-key"
local header = header_name * blank ^ 0 * ":" * blank ^ 0 * ((1 - S "\"'\r\n") ^ 1 / header_value)

local key_tail = alnum + S "_-"
local function key(prefix, least)
  return P(prefix) * key_tail ^ least
end
local known_key = key("sk-", 12) + key("ghp_", 16) + key("gho_", 16) + key("ghu_", 16) +
  key("ghs_", 16) + key("ghr_", 16) + key("github_pat_", 16) + key("glpat-", 12) +
  key("xoxb-", 10) + key("xoxp-", 10) + key("xapp-", 10) + key("AKIA", 16) + key("ASIA", 16) +
  key("AIza", 30) + key("hf_", 20) + key("npm_", 20) + key("pypi-", 16)
local bare_key = known_key / MASK

-- Consumes a whole word, so that nothing above starts in the middle of one.
local word = P "-" ^ 1 + name_char ^ 1

local SCAN <const> = Cs((url + header + assignment + json + long_option + bare_key + word + 1) ^ 0)

-- Per program: Lua patterns of three captures (before, the password, after).
local PASSWORD_OPTIONS <const> = {
  mysql = { "^(%-p)(%S+)()$" }, mysqldump = { "^(%-p)(%S+)()$" }, mysqladmin = { "^(%-p)(%S+)()$" },
  mariadb = { "^(%-p)(%S+)()$" }, sshpass = { "^(%-p)(%S+)()$", "-p" },
  docker = { false, "-p" }, podman = { false, "-p" },
  curl = { "^(%-u)(%S+)()$", "-u", "--user", "-U" },
}

-- One command of a line: the words after a known program are looked at one by one.
local function command(text)
  local options, take
  return (text:gsub("%S+", function(w)
    if take then
      take = false
      return masked(w)
    end
    if not options then
      options = PASSWORD_OPTIONS[w:match("[^/]*$")]
      return nil
    end
    for i = 2, #options do
      if w == options[i] then
        take = true
        return nil
      end
    end
    local before, secret = w:match(options[1] or "^()()$")
    return type(secret) == "string" and before .. masked(secret) or nil
  end))
end

---The text without its secrets.
---@param text string
---@return string
function M.text(text)
  text = text:gsub("[^\n;|&]+", command)
  return lpeg.match(SCAN, text)
end

---How a key may be shown: its known prefix or first characters, and its last four.
---@param secret string
---@return string hint  such as `sk-ant-...a1b2`
function M.hint(secret)
  if #secret < 16 then return "..." end
  local prefix = secret:match("^%a+%-%a+%-") or secret:match("^%a+[_-]") or ""
  if #prefix > 12 then prefix = "" end
  return prefix .. "..." .. secret:sub(-4)
end

return M
