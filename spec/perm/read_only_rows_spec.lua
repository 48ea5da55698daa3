-- Each row of the table: one command that matches it and one that no row may let run.
local calls = require "spec.perm.calls"
local command = require "spec.perm.commands"
local read_only = require "efr.perm.read_only"
local rows = require "efr.perm.data.read_only"

local ROWS = {
  ["8"] = { "ls -la --color=auto *", "/bin/ls" },
  ["9"] = { "pwd -P", "pwdx 1" },
  ["10"] = { "cat -n a $?", "tac a" },
  ["11"] = { "head -5 a*", "heads" },
  ["12"] = { "tail -n 5 a*", "tail -nf a" },
  ["13"] = { "wc -l $?", "WC" },
  ["14"] = { "file -b a*", "file --comp" },
  ["15"] = { "stat -c %s f", "zstat +size f" },
  ["16"] = { "du -sh *", "dust" },
  ["17"] = { "df -h", "dd if=a" },
  ["18"] = { "lsblk -f", "losetup" },
  ["19"] = { "blkid /dev/sda", "blkid -c x" },
  ["20"] = { "findmnt -t ext4", "findmnt --poll" },
  ["21"] = { "free -h", "free -hs 1" },
  ["22"] = { "uptime -p", "reboot" },
  ["23"] = { "uname -a", "unshare" },
  ["24"] = { "whoami", "who" },
  ["25"] = { "id -u", "idx" },
  ["26"] = { "groups", "newgrp x" },
  ["27"] = { "hostname -f", "hostname evil" },
  ["28"] = { "date -u +%s", "date 010100002020" },
  ["29"] = { "which -a git", "where git" },
  ["30"] = { "type ls", "typeset x" },
  ["31"] = { "command -v ls", "command -v -x ls" },
  ["32"] = { "echo -n hi *", "print hi" },
  ["33"] = { "printf %s x", "printf -v x y" },
  ["34"] = { "realpath .", "mktemp" },
  ["35"] = { "readlink -f x", "ln -s a b" },
  ["36"] = { "basename /a/b .c", "rename a b c" },
  ["37"] = { "dirname /a/b", "mkdir a" },
  ["38"] = { "tree -L 2 a*", "tree -Ro" },
  ["39"] = { "rg -n x a*", "rg --pre=./x hi" },
  ["40"] = { "grep -rn x *", "zgrep x y" },
  ["41"] = { "egrep x f", "pgrepx" },
  ["42"] = { "fgrep x f", "ack x" },
  ["43"] = { "diff -u a b", "patch a b" },
  ["44"] = { "cmp a b", "cp a b" },
  ["45"] = { "sort -u a*", "sort f -oP" },
  ["46"] = { "uniq -c f", "uniq f P" },
  ["47"] = { "cut -d: -f1 f", "csplit f 1" },
  ["48"] = { "tr a-z A-Z", "tee f" },
  ["49"] = { "column -t f", "colrm" },
  ["50"] = { "jq -r '.a' f", "jq --run-tests f" },
  ["51"] = { "ps aux", "ps axe" },
  ["52"] = { "ps -ef", "ps -ef x" },
  ["53"] = { "pgrep -a zsh", "pkill zsh" },
  ["54"] = { "ss -tlnp", "ss -K" },
  ["55"] = { "ip a", "ip a add 10.0.0.1 dev lo" },
  ["56"] = { "ip address show dev lo", "ip -batch f" },
  ["57"] = { "ip r", "ip -4 r" },
  ["58"] = { "ip route list table all", "ip route get 1.1.1.1" },
  ["59"] = { "ip l", "ip link set lo down" },
  ["60"] = { "ip link show lo", "ip netns exec x y" },
  ["61"] = { "journalctl -b -1 -n 80", "journalctl --vacuum-time=1s" },
  ["62"] = { "systemctl status nginx", "systemctl stop nginx" },
  ["63"] = { "systemctl --user list-units", "systemctl --user start x" },
  ["64"] = { "systemctl show nginx", "systemctl show" },
  ["65"] = { "systemctl --user show x", "systemctl --user show -n 5" },
  ["66"] = { "git log --oneline -5", "git show --outp=P" },
  ["67"] = { "git --no-pager diff HEAD", "git -P diff" },
  ["68"] = { "git branch -a", "git branch new" },
  ["69"] = { "git --no-pager branch", "git --no-pager branch -D x" },
  ["70"] = { "git remote -v", "git remote add P /x" },
  ["71"] = { "git --no-pager remote", "git --no-pager remote rm x" },
  ["72"] = { "pacman -Qi zsh", "pacman -R zsh" },
  ["73"] = { "pacman -Ss zsh", "pacman -Ss -y zsh" },
  ["74"] = { "lspci -v", "lspci -vq" },
  ["75"] = { "lsusb -t", "usbreset" },
  ["76"] = { "sensors -j", "sensors --set" },
  ["77"] = { "nproc", "nice" },
  ["78"] = { "find . -name '*.c' -type f", "find . -fprint0 P" },
  ["79"] = { "cd ..", "chdir .." },
  ["80"] = { "pushd /tmp", "pushln x" },
  ["81"] = { "popd", "dirs -c" },
  ["82"] = { "sed -n 1,5p f", "sed -ni s/hi/no/p f" },
  ["83"] = { "git tag -l", "git tag -d t1" },
  ["84"] = { "git stash list", "git stash" },
  ["85"] = { "git config --get user.name", "git config --get -f x user.name" },
  ["86"] = { "whence -v ls", "where ls" },
}

local CLEAN = { git_code = { state = "clean" }, found = calls.FOUND }

describe("perm.data.read_only", function()
  -- The row of xargs needs the line around it: read_only_spec.
  it("has every number from 8 to 87", function()
    for i, row in ipairs(rows) do assert.equal(tostring(i + 7), row.id) end
    assert.equal(80, #rows)
  end)

  for _, row in ipairs(rows) do
    local cases = ROWS[row.id]
    it("row " .. row.id .. ": " .. row.program, function()
      if row.input then return end
      assert.is_truthy(cases)
      local found, why = read_only.row(command(cases[1]), CLEAN)
      assert.equal(row.id, found and found.id, why)
      assert.is_nil(read_only.row(command(cases[2]), CLEAN))
    end)
  end

  it("needs a clean repository for git", function()
    local status = command "git status"
    assert.is_nil(read_only.row(status, nil))
    assert.is_nil(read_only.row(status, { git_code = { state = "unknown" }, found = calls.FOUND }))
    local _, why = read_only.row(status,
      { git_code = { state = "dirty", file = ".git/config", key = "core.fsmonitor" }, found = calls.FOUND })
    assert.equal("git would run code: core.fsmonitor of .git/config", why)
  end)
end)
