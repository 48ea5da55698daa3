-- The public test-suite of TOML 1.0 (tests/toml, see its LICENSE): each valid case is read as its
-- JSON file says, each invalid case is refused with a place. The one case of the suite that is
-- tagged as of a later edition is refused as well.

local fs = require "efr.fs"
local json = require "efr.json"
local toml = require "efr.config.toml"

local ROOT <const> = (os.getenv("EFR_SOURCE") or ".") .. "/tests/toml/"
local MAX <const> = 1024 * 1024
local LATER <const> = "valid/string/escape-esc.toml"

-- The .toml files below a folder.
local function cases(folder, out)
  out = out or {}
  for _, entry in ipairs(assert(fs.readdir(folder))) do
    local path = folder .. "/" .. entry.name
    if entry.type == "dir" then
      cases(path, out)
    elseif path:find("%.toml$") then
      out[#out + 1] = path
    end
  end
  table.sort(out)
  return out
end

local function read(path)
  return assert(fs.read_file(path, MAX))
end

local DATETIMES <const> = {
  offset_datetime = "datetime", local_datetime = "datetime-local", local_date = "date-local",
  local_time = "time-local",
}

-- `T` and `Z` in capitals, and no zeros at the end of a fraction: the same moment.
local function moment(text)
  text = text:upper():gsub(" ", "T"):gsub("(%.%d-)0*([Z+%-]?)", "%1%2")
  return (text:gsub("(%.%d*[1-9])0+", "%1"):gsub("%.0+([Z+%-])", "%1"):gsub("%.0+$", ""))
end

local function float_text(value)
  if value ~= value then return "nan" end
  if value == math.huge then return "inf" end
  if value == -math.huge then return "-inf" end
  return value
end

-- A value in the form of the suite, floats as numbers.
local function tagged(value)
  local kind = math.type(value) or type(value)
  if kind == "table" then
    if getmetatable(value) == toml.Datetime then
      return { type = DATETIMES[value.kind], value = moment(value.text) }
    end
    local out = {}
    for key, item in pairs(value) do out[key] = tagged(item) end
    return out
  elseif kind == "float" then
    return { type = "float", value = float_text(value) }
  elseif kind == "boolean" then
    return { type = "bool", value = tostring(value) }
  end
  return { type = kind, value = tostring(value) }
end

-- What the suite expects, in the same form.
local function expected(value)
  if type(value.type) == "string" and type(value.value) == "string" then
    local text = value.value
    if value.type == "float" then
      text = text:gsub("^%+", "")
      text = text:find("nan") and "nan" or tonumber(text) and tonumber(text) + 0.0 or text
    elseif value.type:find("^date") or value.type:find("^time") then
      text = moment(text)
    end
    return { type = value.type, value = text }
  end
  local out = {}
  for key, item in pairs(value) do out[key] = expected(item) end
  return out
end

describe("the TOML 1.0 suite", function()
  local valid, invalid = cases(ROOT .. "valid"), cases(ROOT .. "invalid")

  it("is there", function()
    assert.equal(100, #valid)
    assert.equal(234, #invalid)
  end)

  for _, path in ipairs(valid) do
    it("reads " .. path:sub(#ROOT + 1), function()
      if path == ROOT .. LATER then
        assert.is_nil(toml.parse(read(path)))
        return
      end
      local root, err = toml.parse(read(path))
      assert(root, err)
      local wanted = assert(json.decode(read((path:gsub("toml$", "json")))))
      assert.same(expected(wanted), tagged(root))
    end)
  end

  for _, path in ipairs(invalid) do
    it("refuses " .. path:sub(#ROOT + 1), function()
      local root, err, place = toml.parse(read(path))
      assert.is_nil(root)
      assert.equal(("line %d column %d: "):format(place.line, place.column),
        err:match("^line %d+ column %d+: "))
    end)
  end
end)
