local wrappers = require "efr.perm.wrappers"

-- Where the inner command starts: its program; L: a line; J: all words together; M: elsewhere.
local function peel(line)
  local words = {}
  for text in line:gmatch("%S+") do words[#words + 1] = { text = text, shape = text } end
  local peeled = wrappers.peel(words[1].text, words)
  return (peeled.start and words[peeled.start].text or "-")
    .. (peeled.line and " L:" .. words[peeled.line].text or "")
    .. (peeled.attached and " L:" .. peeled.attached or "") .. (peeled.joined and " J" or "")
    .. (peeled.moved and " M" or "")
end

-- A form that has a command, and one that has none or another.
local ROWS = {
  { "env -i -u A -C d B=c x y", "x M" }, { "env A=b", "-" }, { "env -S x", "- L:x" },
  { "env --split-string=x", "- L:x" }, { "env --sp x", "- L:x" }, { "env -- A=b x", "x" }, { "env -uA x", "x" },
  { "nice -n 5 x", "x" }, { "nice -5 x", "x" }, { "nice --adjustment=5 x", "x" }, { "nice", "-" },
  { "nohup x", "x" }, { "time -p x", "x" }, { "time -f %e x", "x" },
  { "timeout -s KILL -k 1 5 x", "x" }, { "timeout --kill-after 1 5 x", "x" }, { "timeout 5", "-" },
  { "command x", "x" }, { "command -p x", "x" }, { "command -v x", "-" }, { "builtin x", "x" },
  { "exec -a ls x", "x" }, { "exec -l x", "x" }, { "stdbuf -oL -e 0 x", "x" }, { "stdbuf --output=L x", "x" },
  { "ionice -c3 -n 1 x", "x" }, { "ionice -p 1", "-" }, { "chrt -o 0 x", "x" }, { "taskset -c 1 x", "x" },
  { "setsid -w x", "x" }, { "flock -n f x", "x" }, { "flock f -c x", "- L:x" }, { "flock -w 3 f x", "x" },
  { "xargs -0 -n 1 -I {} x", "x" }, { "xargs", "-" }, { "xargs --max-args 1 x", "x" },
  { "watch -n 1 x y", "x J" }, { "unbuffer x", "x" }, { "noglob x", "x" }, { "nocorrect x", "x" }, { "- x", "x" },
  { "sudo -u a -E B=c x", "x" }, { "sudo -D d x", "x M" }, { "sudo -k", "-" }, { "sudo --user a x", "x" },
  { "doas -u a x", "x" }, { "run0 --unit u x", "x" }, { "pkexec --user a x", "x" },
  { "su - u -c x", "- L:x" }, { "su", "-" }, { "sh -c x", "- L:x" }, { "bash -xc x y", "- L:x" },
  { "zsh -o a -c x", "- L:x" }, { "sh f x", "-" }, { "script -qc x f", "- L:x" }, { "unshare -U x", "x" },
  { "prlimit x", "x" }, { "strace -o f x", "x" },
}

describe("perm.wrappers", function()
  for _, row in ipairs(ROWS) do
    it("peels " .. row[1], function() assert.equal(row[2], peel(row[1])) end)
  end

  it("knows its own names only", function()
    assert.is_true(wrappers.is_wrapper "env")
    assert.is_false(wrappers.is_wrapper "ls")
    assert.is_false(wrappers.is_wrapper(nil))
  end)
end)
