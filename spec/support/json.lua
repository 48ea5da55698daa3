-- Owns: a small JSON reader and writer for specs that run without efr.json, with the same face
-- (decode, encode, null, array). Test help only; efr itself uses efr.json.

-- Under the test interpreter it is the real efr.json, which sorts here without being asked.
local has_real, real = pcall(require, "efr.json")
if has_real then
  return setmetatable({
    encode = function(value, opts) return real.encode(value, opts or { sort = true }) end,
  }, { __index = real })
end

local M = {}

local ARRAY = {}
M.null = setmetatable({}, { __tostring = function() return "null" end })

function M.array(t) return setmetatable(t, ARRAY) end
function M.is_array(t) return getmetatable(t) == ARRAY end

local ESC = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b",
  ["\f"] = "\\f",
}

local function quote(s)
  if not utf8.len(s) then error("not UTF-8") end
  local function escape(c) return ESC[c] or ("\\u%04x"):format(c:byte()) end
  return '"' .. s:gsub('[%c"\\]', escape) .. '"'
end

local function write(v)
  local t = type(v)
  if v == M.null then return "null" end
  if t == "string" then return quote(v) end
  if t == "number" then return math.type(v) == "integer" and tostring(v) or ("%.17g"):format(v) end
  if t == "boolean" then return tostring(v) end
  if t ~= "table" then error("cannot encode " .. t) end
  local out = {}
  if M.is_array(v) or #v > 0 then
    for i, x in ipairs(v) do out[i] = write(x) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  local keys = {}
  for k in pairs(v) do keys[#keys + 1] = k end
  table.sort(keys)
  for i, k in ipairs(keys) do out[i] = quote(k) .. ":" .. write(v[k]) end
  return "{" .. table.concat(out, ",") .. "}"
end

---Keys are always sorted.
function M.encode(v)
  local ok, text = pcall(write, v)
  if ok then return text end
  return nil, text, "EFR_JSON"
end

local UNESC = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function read_string(s, i)
  local out = {}
  while true do
    local j = s:find('["\\]', i) or error("unfinished string")
    out[#out + 1] = s:sub(i, j - 1)
    if s:byte(j) == 34 then return table.concat(out), j + 1 end
    local c = s:sub(j + 1, j + 1)
    i = j + 2
    if c == "u" then
      local n = tonumber(s:sub(i, i + 3), 16) or error("bad escape")
      i = i + 4
      if n >= 0xD800 and n < 0xDC00 then
        local low = tonumber(s:match("^\\u(%x%x%x%x)", i), 16)
        n, i = 0x10000 + ((n - 0xD800) << 10) + (low - 0xDC00), i + 6
      end
      out[#out + 1] = utf8.char(n)
    else
      out[#out + 1] = UNESC[c] or c
    end
  end
end

local read

local function read_list(s, i, out, close, item)
  i = s:find("%S", i)
  if s:sub(i, i) == close then return out, i + 1 end
  while true do
    i = item(s, i, out)
    i = s:find("%S", i) or error("unfinished")
    local c = s:sub(i, i)
    if c == close then return out, i + 1 end
    if c ~= "," then error("expected , at " .. i) end
    i = i + 1
  end
end

local WORD = { ["true"] = true, ["false"] = false, null = M.null }

function read(s, i)
  i = s:find("%S", i) or error("no value")
  local c = s:sub(i, i)
  if c == '"' then return read_string(s, i + 1) end
  if c == "{" then
    return read_list(s, i + 1, {}, "}", function(_, at, out)
      at = s:match('^%s*"()', at) or error("key")
      local key
      key, at = read_string(s, at)
      at = s:match("^%s*:()", at) or error("colon")
      out[key], at = read(s, at)
      return at
    end)
  end
  if c == "[" then
    return read_list(s, i + 1, M.array({}), "]", function(_, at, out)
      local v
      v, at = read(s, at)
      out[#out + 1] = v
      return at
    end)
  end
  local word = s:match("^%a+", i)
  if WORD[word] ~= nil then return WORD[word], i + #word end
  local num = s:match("^-?%d[%d%.eE+-]*", i) or error("bad value at " .. i)
  return math.tointeger(num) or tonumber(num), i + #num
end

function M.decode(s)
  local ok, value, stop = pcall(read, s, 1)
  if not ok then return nil, tostring(value), "EFR_JSON" end
  if s:find("%S", stop) then return nil, "text after the value", "EFR_JSON" end
  return value
end

return M
