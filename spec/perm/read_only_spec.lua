-- The wider form: which constructs a line that only reads may have. And that nothing added to a
-- line that does more makes it one that only reads.
local calls = require "spec.perm.calls"
local read_only = require "efr.perm.read_only"
local shell = require "efr.perm.shell"

local CLEAN = { git_code = { state = "clean" }, found = calls.FOUND }

local function judge(line, facts)
  local ast, why = shell.parse(line)
  if not ast then return false, "opaque: " .. why end
  return read_only.judge(ast, facts or CLEAN)
end

-- Construct, a line that only reads, lines that may do more.
local ROWS = {
  { "lists and pipelines", "ls; cat a | sort |& uniq && pwd || id\nwc", "ls &", "ls; touch P",
    "ls | tee P", "coproc ls", "time ls", "touch P || ls" },
  { "negation", "! grep -q x f", "! touch P" },
  { "if", "if ls; then cat a; elif pwd; then id; else wc a; fi < f", "if touch P; then ls; fi",
    "if ls; then touch P; fi", "if ls; then ls; else touch P; fi", "if ls; then ls; fi > P" },
  { "for over literal words", "for i in a b{1..2} ~/c; do cat $i \"${i}x\"; done",
    "for i in a; do touch $i; done", "for i in -o; do sort $i P; done", "for i in *; do cat $i; done",
    "for i in $x; do cat $i; done", "for i in a; do cat $i[1]; done", "for i in a; do cat $i:h; done",
    "for i; do cat $i; done", "for i in a; do ls; done > P", "for i j in a b; do ls; done",
    "for i in 'a -o P'; do sort $i; done", "for i in a; do ls; done; cat $i",
    "for i in 'path[$(touch P)1]'; do ls; done", "for i in touch; do $i P; done" },
  { "plain names of loops", "for x in a; do ls; done", "for path in a; do ls; done",
    "for PATH in .; do ls; done", "for COLUMNS in 1; do ls; done", "for LD_PRELOAD in x; do ls; done",
    "for ld_library_path in x; do ls; done",
    "for perl5lib in x; do ls; done", "for options in a; do ls; done", "for http_proxy in a; do ls; done" },
  { "tests", "[[ -f a && ! ( -n b || c == d ) ]] && [[ a < b ]] && [[ a -nt b ]]", "[[ 1 -eq 1 ]]",
    "[[ -v x ]]", "[[ -t 0 ]]", "[[ -n $x ]]", "[[ -n *(e:x:) ]]", "[[ -n $(touch P) ]]",
    "[[ a =~ b ]]", "[[ a == *(e:x:) ]]", "[[ -f a ]] > P" },
  { "command substitution", "cat $(grep -l x f) \"$(pwd)\" `id`", "cat $(touch P)", "echo `touch P`",
    "sort $(cat f)", "git log $(cat f)", "$(cat f) x", "echo \"$(touch P)\"", "echo $(echo $(touch P))",
    "uniq $(cat f)", "head -n $(cat f > P)", "for i in $(cat f); do ls; done" },
  { "the words of a file", "echo $(< f)", "echo $(> P)", "echo $(< f > P)", "< f", "echo $(<f; touch P)",
    "echo $(< $x)" },
  { "process substitution", "diff <(sort a) <(sort b)", "cat =(ls)", "ls > >(cat)", "cat <(touch P)",
    "cat a<(ls)", "diff <(sort a) <(tee P)" },
  { "here-documents", "cat <<E\n$(pwd) $((1+1))\nE\n", "cat <<E\n$(touch P)\nE\n", "cat <<E\n$x\nE\n",
    "cat <<E\n${x:-$(touch P)}\nE\n", "sh <<E\nls\nE\n", "cat <<E > P\nx\nE\n" },
  { "verbatim here-documents", "cat <<'E'\n$(touch P) $x `y`\nE\n", "cat <<'E'\nx\nE\ntouch P" },
  { "here-strings", "wc -c <<< \"a b\" && wc <<< $(pwd)", "wc <<< $(touch P)", "wc <<< $x",
    "sh <<< ls" },
  { "arithmetic of literals", "echo $((1 + 2 * (3 << 1))) $[4]", "echo $((x))", "echo $((a[1]))",
    "echo $(( $(touch P) ))", "sort -k$((1+1)) f", "(( 1 ))" },
  { "braces of literals", "ls {a,b}{c,'d e'} {1..3} x{a..c}", "ls {a,$(touch P)}", "ls {a,$x}",
    "uniq {a,b}", "systemctl show {,}", "ls {1..100000}", "{touch,P}", "sort {-o,P}" },
  { "$'...'", "echo $'a\\tb'", "echo $'\\e[0m'", "$'touch' P", "echo $'\\0'" },
  { "patterns", "ls *.c a?[bc] f<1-3> **/x; cat *; tail -n 3 a*", "tail *", "uniq a*", "sort *",
    "ls -*", "jq .a f*", "find *", "f* x", "ls (a|b)", "systemctl show a*" },
  { "qualifiers", "ls -d *(om[1]) *(.N) a*(/) b*(@OLn) x(D)", "ls *(e:x:)", "ls *(+f)", "ls *(oe:x:)",
    "ls *(^.)", "ls *(u:root:)", "ls *(#qN)", "uniq f P(N)", "systemctl show x(N)", "ls *([x])" },
  { "xargs behind an echo", "echo a b | xargs -0 -r -n 2 cat -n", "ls | xargs cat", "xargs cat",
    "echo a | xargs touch", "echo a | xargs sort", "echo a | xargs git log", "echo -n a | xargs cat",
    "echo a | xargs -I{} cat", "echo 'a b' | xargs cat", "echo $x | xargs cat", "echo a | xargs",
    "echo a | xargs cat < f", "echo a; xargs cat", "echo a | cat | xargs cat", "echo * | xargs cat",
    "echo a |& xargs cat", "echo a | xargs -n x cat", "echo a | xargs -P 2 cat" },
  { "redirections that write nothing", "ls 2>&1 > /dev/null < f &> /dev/null 3<&0 >> /dev/null", "ls > P",
    "ls >&P", "ls <> P", "ls {fd}> /dev/null", "ls > $x", "ls > /dev/null/../x", "ls > /dev/nul*",
    "ls >&-", "ls >&11", "cat <&12", "ls > {a,b}", "cat < $(touch P)" },
  { "harmless assignments", "LC_ALL=C.UTF-8 TZ=Europe/Berlin COLUMNS=80 NO_COLOR=1 ls",
    "LANG=/tmp/x ls", "LANGUAGE=../../x ls", "LC_MESSAGES=.. ls", "TZ=/etc/shadow date", "TZ=:/x date",
    "TZ=a/../../x date", "TERM=../x ls", "PATH=x ls", "FOO=1 ls",
    "LC_ALL=$x ls", "LC_ALL=C", "LINES='path[$(x)1]' ls", "LANG+=x ls", "TERM=$(touch P) ls" },
  { "nothing else", "ls", "(ls)", "{ ls; }", "f() { ls; }", "while ls; do ls; done", "case a in a) ls;; esac",
    "select x in a; do ls; done", "repeat 2 ls", "ls # x", "ls !x", "ls \"a!b\"", "command ls", "\\time ls",
    "exec ls", "eval ls", "sudo ls", "env ls", "alias ls=x", "ls ~x", "ls =ls", "ls a\"\\\nb\"", "", ";",
    "noglob ls", "- ls", "until ls; do ls; done" },
}

describe("perm.read_only", function()
  for _, row in ipairs(ROWS) do
    it("knows " .. row[1], function()
      assert.is_true(judge(row[2]))
      for i = 3, #row do
        local ok, why = judge(row[i])
        assert.is_false(ok, row[i])
        assert.is_string(why)
      end
    end)
  end

  it("gives each command with its row, also each turn of a loop", function()
    local ok, parts = judge "for i in a b; do cat $i; done; ls | wc"
    assert.is_true(ok)
    local out = {}
    for i, part in ipairs(parts) do
      out[i] = part.row.id .. " " .. (part.command.words[2] and part.command.words[2].text or "")
    end
    assert.same({ "10 a", "10 b", "8 ", "13 " }, out)
  end)

  it("has a limit on the work of loops", function()
    local values = ("a "):rep(64)
    assert.is_true(judge("for i in " .. values .. "; do ls $i; done"))
    assert.is_false(judge("for i in b " .. values .. "; do ls $i; done"))
    assert.is_false(judge("for i in " .. values .. "; do " .. ("ls $i; "):rep(100) .. "done"))
  end)

  it("names the part that it does not know", function()
    local ok, why, part = judge "ls; sort -o P f"
    assert.is_false(ok)
    assert.equal("sort is not known to only read with these arguments", why)
    assert.equal(5, part.pos)
  end)

  it("takes no word whose braces make a great deal of text", function()
    assert.is_true(judge("cat {a,b}{a,b}" .. ("x"):rep(1000)))
    assert.is_false(judge("cat " .. ("{a,b}"):rep(7) .. ("x"):rep(1000)))
  end)

  it("wants the fact about git only where it decides", function()
    local function uses(line) return read_only.uses_git(shell.parse(line)) end
    assert.is_true(uses "ls; git status")
    assert.is_true(uses "echo $(git log -1)")
    assert.is_false(uses "ls")
    assert.is_false(uses "git push")
    assert.is_false(judge("git status", {}))
  end)
end)

describe("what is added to a line that does more", function()
  local MORE = { "touch P", "sort -o P f", "git push", "ls > P", "tail -f x", "printf %d 'a[1]'",
    "PATH=. ls", "$x", "date 0101", "sed -i p f", "uniq a b", "echo $x", "f() { ls; }" }
  local ONLY = { "ls", "cat a*", "for i in a; do ls; done", "[[ -f a ]]", "echo $(pwd)", "git log" }

  it("never makes it one that only reads", function()
    for _, more in ipairs(MORE) do
      assert.is_false(judge(more), more)
      for _, only in ipairs(ONLY) do
        assert.is_true(judge(only), only)
        for _, op in ipairs { ";", "\n", "&&", "||", "|", "|&", "&" } do
          assert.is_false(judge(more .. " " .. op .. " " .. only))
          assert.is_false(judge(only .. " " .. op .. " " .. more))
        end
        assert.is_false(judge(("if %s; then %s; fi"):format(only, more)))
        assert.is_false(judge(("echo $(%s; %s)"):format(only, more)))
        assert.is_false(judge(("diff <(%s) <(%s)"):format(only, more)))
        assert.is_false(judge(("cat <<E\n$(%s)\nE\n%s"):format(more, only)))
      end
    end
  end)

  it("is no argument either", function()
    local ARGUMENTS = { "-l", "--", "a", "-", "--help", "--version", "'a b'", "-n", "+x", "a=b", "*",
      "$(pwd)", "< f", "2>&1", "> /dev/null", "show", "status", "-v" }
    for _, more in ipairs { "touch P", "sort -o P f", "git push", "tail -f x", "date 0101", "sed -i p f",
      "uniq a b", "printf %d 'a[1]'", "git branch x", "find . -delete", "jq env", "tree -o P", "git tag -d x",
      "hostname x", "rg --pre=x y", "ip link set lo down", "systemctl show", "journalctl --rotate", "ps axe" } do
      for _, argument in ipairs(ARGUMENTS) do
        -- The one argument that it lacks: a unit.
        if more ~= "systemctl show" then
          assert.is_false(judge(more .. " " .. argument), more .. " " .. argument)
        end
      end
    end
  end)
end)
