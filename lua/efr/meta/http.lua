---@meta efr.http
-- luacheck: ignore 212 241
-- The C module efr.http: streaming HTTP requests over libcurl, which is loaded at the first
-- request. Stub for readers and for tests/lint; never loaded by the program. Loop thread of efrd.

local M = {}

---@class efr.http.Options
---@field method string|nil              "GET"
---@field url string                     http or https
---@field headers string[]|nil           "Name: value"; "Name;" for an empty value
---@field body string|nil                any bytes; the copy that is sent is wiped
---@field connect_timeout_ms integer|nil  name, connection and TLS; curl's 300 s when 0 or absent
---@field idle_timeout_ms integer|nil    silence after that; 0 or absent = no limit
---@field max_bytes integer|nil          of the answer's body; 0 or absent = no limit
---@field ca_file string|nil             PEM file of trusted roots, instead of the system's
---@field proxy string|nil               a proxy's URL; the environment never gives one

---@class efr.http.Callbacks
---@field on_head fun(status: integer, lines: string)|nil  once; "Name: value\r\n" each
---@field on_data fun(bytes: string)|nil
---on_done is the last one, always called: without arguments when the answer is complete, else
---with a text that names the host and a code: EFR_CONNECT (no connection was made, nothing was
---sent), EFR_TLS, EFR_TIMEOUT, EFR_IO, EFR_TOO_BIG, EFR_CANCELLED.
---@field on_done fun(err: string?, code: string?)

---@class efr.http.Request
local Request = {}

---Starts a request. Redirects are not followed. No callback runs before this returns. After a
---nil result none runs at all: EFR_INVALID (URL, method, header), EFR_UNAVAILABLE (no libcurl).
---@param options efr.http.Options
---@param callbacks efr.http.Callbacks
---@return efr.http.Request? request
---@return string? err
---@return string? code
function M.request(options, callbacks) end

---Ends the request now, also from inside a callback. Only on_done follows, in a later turn of
---the loop, with EFR_CANCELLED. Does nothing when the request has ended.
---@return true
function Request:cancel() end

---The same as cancel.
---@return true
function Request:close() end

return M
