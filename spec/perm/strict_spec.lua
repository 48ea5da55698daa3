local shell = require "efr.perm.shell"
local strict = require "efr.perm.strict"

-- The words of each command, with * behind one that has an active pattern.
local function read(line)
  local ast, why = shell.parse(line)
  if not ast then return "opaque: " .. why end
  local commands, construct = strict.commands(ast)
  if not commands then return construct end
  local out = {}
  for i, command in ipairs(commands) do
    local words = {}
    for j, word in ipairs(command.words) do words[j] = word.text .. (word.glob and "*" or "") end
    out[i] = table.concat(words, "|")
  end
  return table.concat(out, " / ")
end

-- Lines that split, and the words they split into.
local SPLIT = {
  { "ls", "ls" },
  { "ls;pwd", "ls / pwd" },
  { "ls\npwd;\n", "ls / pwd" },
  { "a && b || c | d |& e", "a / b / c / d / e" },
  { "ls &&\npwd", "ls / pwd" },
  { "echo 'a;b' \"c|d\" e\\;f", "echo|a;b|c|d|e;f" },
  { "echo '$(x) `y` !z'", "echo|$(x) `y` !z" },
  { "echo \"\\$x \\`y\\` \\\"\"", "echo|$x `y` \"" },
  { "cat ~ ~/x", "cat|~|~/x" },
  { "git log --format=%H", "git|log|--format=%H" },
  { "ls a* b?c d[xy]", "ls|a**|b?c*|d[xy]*" },
  { "ls HEAD~2 HEAD^", "ls|HEAD~2*|HEAD^*" },
  { "ls > /dev/null 2>&1", "ls" },
  { "ls 2>/dev/null < in &>/dev/null", "ls" },
  { "wc -l <f", "wc|-l" },
  { "LC_ALL=C TZ=UTC ls", "ls" },
  { "COLUMNS=80 ls", "ls" },
  { "x a=b/c@d:e,f+g%h_i.j-k", "x|a=b/c@d:e,f+g%h_i.j-k" },
  { "  ls   -l  ", "ls|-l" },
  { "\nls\n\n", "ls" },
  { "ls;;", "opaque: no match" },
  { "ls\\ -l", "ls -l" },
  { "'ls' \"-l\"", "ls|-l" },
  { "l's' -'l'", "ls|-l" },
  { "echo ''", "echo|" },
  { "echo \"a\\nb\"", "echo|a\\nb" },
  { "echo 'a\nb'", "echo|a\nb" },
  { "echo 'a\tb'", "echo|a\tb" },
  { "echo '\xc3\xa9' \"\xc3\xa9\"", "echo|\xc3\xa9|\xc3\xa9" },
  { "echo '#x' a#b", "echo|#x|a#b*" },
  { "echo -- -a", "echo|--|-a" },
  { "echo '!'", "echo|!" },
  { "ls>/dev/null", "ls" },
  { "ls 2>&1|wc", "ls / wc" },
  { "2>/dev/null ls", "ls" },
  { "cat < 'a b' < c", "cat" },
  { "LANG=C LC_TIME=de_DE.UTF-8 date", "date" },
  { "NO_COLOR= ls", "ls" },
  { "cd a; cd b && make", "cd|a / cd|b / make" },
  { "a|b|c|d", "a / b / c / d" },
}

-- Each construct, as the specification's table has them.
local CONSTRUCTS = {
  ["command substitution"] = { "echo $(ls)", "echo `ls`", "echo \"$(ls)\"", "echo \"`ls`\"",
    "echo $((1+2))", "a$(b)" },
  ["process substitution"] = { "cat <(ls)", "cat =(ls)" },
  expansion = { "echo $x", "echo \"$x\"", "echo ${x}", "echo $'x'", "$x" },
  history = { "echo !x", "echo \"!x\"", "! ls", "echo a\"b!\"" },
  grouping = { "(ls)", "{ ls }", "f() { ls }", "ls {a,b}", "ls a*(.)", "if a; then b; fi",
    "for i in a; do b; done", "[[ -f x ]]", "(( 1 ))", "case a in b) c;; esac", "while a; do b; done" },
  glob = { "ls *", "ls ?a", "ls [ab]", "ls ''*", "ls -a*", "*x", "ls -x~y", "ls ^a" },
  ["here-document"] = { "cat <<E\nx\nE\n", "cat <<< x" },
  redirection = { "ls > x", "ls >> x", "cat <> x", "ls >! /dev/null", "ls >&-", "ls 2> /dev/nul",
    "ls >| x", "ls >& x", "ls &> x", "cat < ''" },
  background = { "ls &", "ls & pwd", "ls &!", "ls &|" },
  assignment = { "PATH=x ls", "LD_PRELOAD=x ls", "PATH+=x ls", "LC_ALL+=x ls", "x=1",
    "LC_ALL=$x ls", "LINES='path[$(x)1]' ls", "TZ=(a b) ls", "COLUMNS=a ls" },
  builtin = { "eval ls", "exec ls", ". x", "source x", "alias a=b", "set -x", "noglob ls",
    "- ls", "coproc ls", "typeset x=1", "zmodload x" },
  unfinished = { "ls a\"\\\nb\"" },
  character = { "ls \1", "ls \xc3\xa9", "ls =ls", "ls ~root", "ls # x", "echo \"\27[m\"" },
  empty = { "", " ", ";", "> /dev/null" },
}

describe("perm.strict", function()
  for _, row in ipairs(SPLIT) do
    it("splits " .. row[1], function() assert.equal(row[2], read(row[1])) end)
  end

  for construct, lines in pairs(CONSTRUCTS) do
    it("sees " .. construct, function()
      for _, line in ipairs(lines) do assert.equal(construct, read(line), line) end
    end)
  end

  it("sees no command in what the grammar refuses", function()
    for _, line in ipairs { "ls &&", "ls 'x", "ls \"x", "ls ;; pwd", "ls >", "echo $(", "ls \\" } do
      assert.matches("^opaque", read(line), line)
    end
  end)

  it("knows what runs as another user, and what stands behind a cd", function()
    local commands = strict.commands(shell.parse("ls; env -i /usr/bin/sudo x; cd a && make; sudo b"))
    local seen = {}
    for i, command in ipairs(commands) do
      seen[i] = (command.privileged and "P" or "-") .. (command.moved and "M" or "-")
    end
    assert.same({ "--", "P-", "--", "-M", "PM" }, seen)
    assert.is_true(strict.names_privileged("'; /usr/bin/sudo x"))
    assert.is_false(strict.names_privileged("pseudo sudoers"))
  end)
end)
