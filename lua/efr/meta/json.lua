---@meta efr.json
-- JSON. Integers are exact in 64 bits and stay integers, floats stay floats. An array is a table
-- with the array mark; decoded arrays have it. Failures are nil, text, "EFR_JSON"; texts never
-- quote the input.
local M = {}

---Stands for null, in both directions.
---@type lightuserdata
M.null = nil

---@class efr.JsonDecodeOptions
---@field max_depth integer?  nesting that is accepted; default 64, at most 256
---@field max_bytes integer?  length that is accepted; default 64 MiB

---Reads one value. Refuses duplicate keys, invalid UTF-8, integers beyond 64 bits and anything
---after the value.
---@param text string
---@param options? efr.JsonDecodeOptions
---@return any value
---@return string? err
---@return string? code
function M.decode(text, options) end

---@class efr.JsonEncodeOptions
---@field sort boolean?  keys in byte order; else their order is not defined
---@field pretty boolean?  two spaces of indentation; else one line

---Writes one value. An empty table without the mark becomes {}, a sequence an array. Refuses
---holes, mixed keys, strings that are no UTF-8, numbers that are not finite, functions, cycles.
---@param value any
---@param options? efr.JsonEncodeOptions
---@return string? text
---@return string? err
---@return string? code
function M.encode(value, options) end

---Marks a table as an array and returns it. Raises when it has another metatable.
---@generic T: table
---@param list T
---@return T
function M.array(list) end

---Whether the value has the array mark.
---@param value any
---@return boolean
function M.is_array(value) end

return M
