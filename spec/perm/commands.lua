-- Commands of the permission specs without the grammar: words cut at blanks, '...' quotes, a word
-- with * or ? is a pattern of file names, `$?` stands for a word that nobody can know.
return function(line)
  local words = {}
  local at = 1
  while at <= #line do
    local quoted, after = line:match("^'([^']*)'()%s*", at)
    local plain, behind = line:match("^(%S+)()", at)
    local text = quoted or plain
    if not text then break end
    local field = { text = text }
    if not quoted and text:find("[*?]") then field.glob = true end
    if not quoted and text:find("^[*?]") then field.front = true end
    if text == "$?" then field = {} end
    words[#words + 1] = field
    at = line:match("^%s*()", after or behind)
  end
  return { words = words }
end
