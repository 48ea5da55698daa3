local checks = require "efr.perm.checks"

-- Each row: words separated by |
local function words(row)
  local out = {}
  for word in (row .. "|"):gmatch("([^|]*)|") do out[#out + 1] = word end
  return out
end

local function each(check, good, bad)
  for _, row in ipairs(good) do assert.is_true(checks[check](words(row)), row) end
  for _, row in ipairs(bad) do assert.is_false(checks[check](words(row)), row) end
end

describe("perm.checks", function()
  it("knows sed that only prints", function()
    each("sed_print_only", {
      "-n|p", "-n|1,5p|f", "--quiet|$p", "--silent|/a b/p", "-n|/x/I,/y/Mp", "-n|1~3p;2!p",
      "-n|1,+3 l 5", "-n|1,~4=", "-n|-e|p|-e|$p|f", "-nE|-u|-r|p", "-ne|p", "-nep",
      "--expression=s/a/b/|f", "--expression|d", "-n|--regexp-extended|--posix|--sandbox|p",
      "s/a/b/|f", "s/a/b/g|f", "s/a\\/b/c\\/d/3|f", "1d", "q", "5q|f", "Q2", "$d; s/x/y/\n2d",
      "-n|q1", "p|-n", "-n|--|p|-i", "",
    }, {
      "p", "1p|f", "-i|s/a/b/|f", "-n|w out", "-n|1e", "s/a/b/e", "s/a/b/w out", "-n|r f", "s|a|b|",
      "-n|-i|p", "-n|--in-place|p", "-n|-f|x", "-n|--file=x", "-nf|x", "-n|--expr|p", "-n|-s|p",
      "-n|/[/]/p", "s/[a/]b/w x", "-n|{p}", "s/a/b\nw x/", "-n|:x", "-n|y/a/b/", "-n|-e", "-n",
      "s/a/b/|-i", "-n|p|--in-place=x", "-n|s/a/b/W x", "-n|1!", "l", "=", "-n|p # x", "-s|s/a/b/",
      "-n|-l|5|p", "-n|/a\np", "-ni|p", "-z|s/a/b/",
    })
  end)

  it("knows names of refs", function()
    each("ref_names", { "main", "origin/main", "HEAD~2", "v1.2", "-q|a^", "_x" },
      { "--", "a..b", "a//b", "a/", "a.", "../x", "/x", ".x", "-q|a b", "a:b", "" })
  end)

  it("knows date that prints", function()
    each("date_prints", { "+%s", "-u", "-d|tomorrow|+%F", "--date=x", "-r|f", "-I", "--|+%F" },
      { "010100002020", "-u|0101", "-d|x|0101", "--|-d", "-d|-r|0101", "--dat|0101" })
  end)

  it("knows jq that does not reach the environment", function()
    each("jq_closed", { ".a|f", "-r|.a", "--arg|x|1|.", "" },
      { "env", "-1,env", "--|-x,$ENV", "-n|import \"x\" as x; .", "include", "--|--env" })
  end)

  it("knows systemctl that names a unit", function()
    each("names_unit", { "nginx", "--no-pager|nginx", "-a|nginx", "--type=service|nginx", "a|-n|5",
        "-n|5|nginx" },
      { "", "-t|service", "-n|5", "--lines|5", "--", "--|", "-o|short|--all", "--job-mode|fail" })
  end)

  it("knows printf whose numbers are numbers", function()
    each("printf_plain",
      { "x", "%s\\n|a[1]", "%d|5", "%5.2f %s|1.5|a[$(x)]", "%%|x", "a\\tb\\\\\\0|x", "--|%s|x", "%s %d|a|-1|b|0x1f" },
      { "%d|path[$(touch P)1]", "%s %d|a|b", "%d|1|x", "%*s|1|x", "%1$d|1", "-x", "%d %s|1|b|c", "\\0045d|x",
        "%", "%n|x", "%.*f|2|1.5", "\\u0025d|path[$(touch P)1]", "\\U00000025d|path[$(touch P)1]",
        "%\\x64|path[$(touch P)1]", "\\%d|path[$(touch P)1]", "x\\" })
  end)
end)
