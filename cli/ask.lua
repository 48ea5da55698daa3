-- Questions of a command that are answered with a line on the terminal.
-- Owns: whether a person can be asked, reading the line. Must not know: what is asked.
-- Runs in `efr`; reading waits.

local M = {}

--- Whether somebody sits at both ends.
--- @return boolean
function M.possible(env)
  return env:is_tty(0) and env:is_tty(2)
end

--- Asks for a line; blanks around it go.
--- @param env table
--- @param words string  what stands before the answer
--- @return string? answer  "" for Enter alone; nil at the end of input
function M.line(env, words)
  env:err(words)
  local answer = env.ports.tty.read(0)
  if not answer or answer == "" then
    env:err("\n")
    return nil
  end
  return answer:match("^%s*(.-)%s*$")
end

--- A question that Enter answers with yes.
--- @return boolean
function M.yes(env, words)
  local answer = M.line(env, words .. " [Y/n] ")
  return answer ~= nil and not answer:find("^[nN]")
end

--- A question that only y answers with yes.
--- @return boolean
function M.only_yes(env, words)
  local answer = M.line(env, words .. " y/n ")
  return answer ~= nil and answer:find("^[yY]") ~= nil
end

return M
