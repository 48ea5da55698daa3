local lenient = require "efr.perm.lenient"
local shell = require "efr.perm.shell"

-- Each command: its words, ? for what is not known; P privileged, B builtin, D directory not known,
-- U not read.
local function show(command)
  local words = {}
  for i, word in ipairs(command.words) do words[i] = word.text or "?" end
  local marks = (command.privileged and "P" or "") .. (command.builtin and "B" or "")
    .. (command.cwd_lost and "D" or "") .. (command.unread and "U" or "")
  return table.concat(words, " ") .. (marks ~= "" and "[" .. marks .. "]" or "")
end

local function read(line)
  local out = {}
  for i, command in ipairs(lenient.commands(assert(shell.parse(line)))) do out[i] = show(command) end
  return table.concat(out, " / ")
end

local ROWS = {
  -- Every place where a command may stand.
  { "a & b; (c) | { d }; ! e", "a / b / c / d / e" },
  { "if a; then b; elif c; then d; else e; fi", "a / b / c / d / e" },
  { "while a; do b; done; until c; do d; done", "a / b / c / d" },
  { "case x in a) b;; c) d;; esac", "b / d" },
  { "f() { rm z }; f", "rm z / f" },
  { "repeat 2 rm z", "rm z" },
  { "[[ -n $(rm z) ]] && (( $(rm y) ))", "rm z / rm y" },
  { "a $(b `c`) <(d) =(e)", "c / b ? / d / e / a ? ? ?" },
  { "x=$(rm z) y", "rm z / y" },
  { "a <<E\n$(rm z)\nE\n", "rm z / a" },
  { "a <<'E'\n$(rm z)\nE\n", "a" },
  { "echo ${x:-$(rm z)} ${y[$(rm w)]}", "rm z / rm w / echo ? ?[B]" },
  { "a # rm z", "a" },
  -- Words.
  { "a $x \"b$y\" $'\\x63' ~/d {e,f}g h{1..3}", "a ? ? c ~/d eg fg h1 h2 h3" },
  { "$x y", "? y / y" },
  { "$x $y rm z", "? ? rm z / ? rm z / rm z" },
  { "*(N) rm z", "* rm z / rm z" },
  { "a$x rm z", "? rm z" },
  { "env $x rm z", "env ? rm z / ? rm z / rm z" },
  { "for i in a b; do rm $i ${i}x; done; rm $i", "rm a ax / rm b bx / rm ?" },
  { "for i in a $x; do rm $i; done", "rm a / rm ?" },
  { "for i in a; do i=$x; rm $i; done", " / rm ?" },
  -- Wrappers.
  { "sudo -u root env A=b nice -n 5 rm x",
    "sudo -u root env A=b nice -n 5 rm x[P] / env A=b nice -n 5 rm x[P] / nice -n 5 rm x[P] / rm x[P]" },
  { "timeout -k 3 5 rm x", "timeout -k 3 5 rm x / rm x" },
  { "flock -w 3 f rm x", "flock -w 3 f rm x / rm x" },
  { "flock f -c 'rm x'", "flock f -c rm x / rm x" },
  { "command -v rm", "command -v rm[B]" },
  { "command rm x", "command rm x[B] / rm x" },
  { "noglob kill x", "noglob kill x[B] / kill x[B]" },
  { "env kill x", "env kill x / kill x" },
  { "env -C /d rm x", "env -C /d rm x / rm x[D]" },
  { "env -S 'rm x'", "env -S rm x / rm x" },
  { "env --split='rm x'", "env --split=rm x / rm x" },
  { "xargs -n 1 rm", "xargs -n 1 rm / rm ?" },
  { "echo a b | xargs rm", "echo a b[B] / xargs rm / rm a b" },
  { "find a b -exec rm {} \\; -ok c +", "find a b -exec rm {} ; -ok c + / rm ? / c" },
  { "watch -n 1 'rm x; y'", "watch -n 1 rm x; y / rm x / y / rm x; y" },
  -- Lines inside lines.
  { "sh -c 'rm x'", "sh -c rm x / rm x" },
  { "bash -lc 'zsh -c \"rm x\"'", "bash -lc zsh -c \"rm x\" / zsh -c rm x / rm x" },
  { "eval 'rm x' y", "eval rm x y[B] / rm x y" },
  { "eval $x", "eval ?[B] / [U]" },
  { "trap 'rm x' EXIT", "trap rm x EXIT[B] / rm x" },
  { "sh -c 'rm \"'", "sh -c rm \" / [U]" },
  { "su -c 'rm x' u", "su -c rm x u[P] / rm x[P]" },
  { "sudo sh -c 'rm x; sh -c y'; z",
    "sudo sh -c rm x; sh -c y[P] / sh -c rm x; sh -c y[P] / rm x[P] / sh -c y[P] / y[P] / z" },
  -- Directories.
  { "a; cd b; c", "a / cd b[B] / c[D]" },
  { "(pushd b); c", "pushd b[B] / c[D]" },
}

describe("perm.lenient", function()
  for _, row in ipairs(ROWS) do
    it("finds the commands of " .. row[1]:gsub("\n", "\\n"), function()
      assert.equal(row[2], read(row[1]))
    end)
  end

  it("knows redirections and their targets", function()
    local line = "a > x 2>> y <> z &>! v 2>&1 >&- < w >& u"
    local out = {}
    for i, redir in ipairs(lenient.commands(shell.parse(line))[1].redirs) do
      out[i] = redir.op .. redir.target.text .. (redir.write and "!" or "")
        .. (redir.append and "+" or "")
    end
    assert.equal(">x! >>y!+ <>z! &>!v! >&1 >&- <w >&u!", table.concat(out, " "))
  end)

  it("keeps the place in a pipeline", function()
    local commands = lenient.commands(shell.parse "curl x | sudo sh")
    assert.is_true(commands[1].piped.into)
    assert.equal(commands[1], commands[3].piped.from)
    assert.same({ "sudo" }, commands[3].wrappers)
  end)

  it("stops at wrappers of wrappers and lines of lines", function()
    local line = ("watch "):rep(2000) .. "x"
    local commands = lenient.commands(shell.parse(line))
    assert.is_true(#commands < 100)
    assert.equal("x ?[D]", show(commands[#commands]))
  end)

  it("searches a line that is too long for names, and says so", function()
    local loop = "for i in " .. ("a "):rep(64) .. "; do " .. ("ls $i; "):rep(200) .. "curl x; done"
    local unread, last = false, nil
    for _, command in ipairs(lenient.commands(shell.parse(loop))) do
      unread = unread or command.unread
      if command.program == "curl" then last = command end
    end
    assert.is_true(unread)
    assert.equal("curl ?[D]", show(last))
  end)

  it("finds names anywhere in a line that nobody can read", function()
    local found = lenient.programs("x 'y;/usr/bin/curl \"$(rm")
    assert.is_true(found.curl)
    assert.is_true(found.rm)
    assert.is_nil(found["/usr/bin/curl"])
  end)
end)
