---@meta efr.tty
-- Stub of cli/lua_tty.c: the user's terminal. Only in `efr`.

---@class efr.tty
local tty = {}

---Size of the terminal behind a descriptor.
---@param fd integer
---@return integer? cols
---@return integer|string lines_or_message
---@return string? code
function tty.size(fd) end

---Keeps the state of the terminal; every exit of the process puts it back. A second call changes nothing.
---@param fd integer
---@return boolean? ok
---@return string? message
---@return string? code
function tty.save(fd) end

---Sets a mode on the saved terminal: "quiet" = whole lines without echo, "keys" = single keys without echo,
---"raw" = every key as its bytes.
---@param mode "quiet"|"keys"|"raw"
---@return boolean? ok
---@return string? message
---@return string? code
function tty.set_mode(mode) end

---Puts the saved state back and forgets it; with flush, unread input is thrown away.
---@param flush boolean
---@return boolean? ok
---@return string? message
---@return string? code
function tty.restore(flush) end

---Throws unread input away.
---@param fd integer
---@return boolean? ok
---@return string? message
---@return string? code
function tty.flush_input(fd) end

---Whether this process is in the terminal's foreground.
---@param fd integer
---@return boolean
function tty.foreground(fd) end

---Bytes (at most 128) that are written when a signal ends the process. Empty: none.
---@param fd integer
---@param bytes string
---@return boolean? ok
---@return string? message
---@return string? code
function tty.farewell(fd, bytes) end

---Reads what is there; empty when nothing is, or at the end of input.
---@param fd integer
---@return string? bytes
---@return string? message
---@return string? code
function tty.read(fd) end

---Writes all bytes, waiting where the descriptor does not take more.
---@param fd integer
---@param bytes string
---@return boolean? ok
---@return string? message
---@return string? code
function tty.write(fd, bytes) end

return tty
