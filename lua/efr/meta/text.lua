---@meta efr.text
-- UTF-8 and what a terminal makes of it. Takes any bytes.
local M = {}

---@param text string
---@return boolean
function M.is_utf8(text) end

---U+FFFD in place of each piece that is no UTF-8.
---@param text string
---@return string
function M.clean(text) end

---Columns on a terminal. Controls take none: use printable first when there may be some.
---@param text string
---@return integer
function M.width(text) end

---The byte index after the grapheme cluster that starts at index; nil when index is after the end.
---@param text string
---@param index integer  from 1
---@return integer? next
function M.next_grapheme(text, index) end

---A form that shows every character on one line: controls (also newline and tab) become control
---pictures, format characters and what has no ink <U+XXXX>, broken bytes U+FFFD.
---@param text string
---@return string
function M.printable(text) end

return M
