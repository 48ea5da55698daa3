-- Owns: the commands that only read, as rows of the machine policy (rules 8 to 87 of cautious).
-- Must not know: how a line is read or how a row is matched (efr.perm.matching).
-- Data; runs nowhere.
--
-- A row is a command pattern as in `[[permissions.rules]]`, with its number as `id`. Rows with no
-- key but `program` take any arguments, also ones that efr cannot know. `git` rows need the fact
-- that the repository's own configuration names no program. `check` names a function of
-- efr.perm.checks. `input`: only behind a command of this name, whose words are then operands.
-- `plus_ends`: no word from + to this letter, as in the old `tail +1f FILE`, which follows.
--
-- Odd rows: ps reads a whole line in BSD syntax when one word is no UNIX syntax, and the BSD `e`
-- prints environments; `systemctl show` without a unit prints the manager's environment; `uniq IN
-- OUT` writes; `date TIME` sets the clock; printf of zsh runs what its numbers contain; jq takes
-- `-1,env` as its program, and with --run-tests those of a file; lspci -q asks a server and keeps a
-- file of the answers, and -M lets it drive the bus; `file -p` sets times; --image mounts one; git
-- asks gpg about signatures; `command -v -x` runs a program of the name `-v`.

local SYSTEMCTL <const> =
  "status|list-units|list-unit-files|is-active|is-enabled|is-failed|cat"
local GIT <const> = "status|diff|log|show|rev-parse|ls-files|blame"
local GIT_FORBID <const> = { "--output", "--show-signature" }
local BRANCH_WRITES <const> = {
  "-d", "-D", "--delete", "-m", "-M", "--move", "-c", "-C", "--copy", "-f", "--force", "-u",
  "--set-upstream-to", "--unset-upstream", "--edit-description", "-t", "--track", "--no-track",
  "--create-reflog",
}
local REMOTE_HOST <const> = { "-H", "--host", "--image*" }
local SHOW <const> = { "-H", "--host", "--image*", "-p", "-P", "--property" }
local ADDRESS <const>, ROUTE <const>, LINK <const> = "addr|address|a", "route|r", "link|l"

return {
  { id = "8", program = "ls" },
  { id = "9", program = "pwd" },
  { id = "10", program = "cat" },
  { id = "11", program = "head" },
  { id = "12", program = "tail", forbid = { "-f", "-F", "--follow" }, plus_ends = "f" },
  { id = "13", program = "wc" },
  { id = "14", program = "file", forbid = { "-C", "--compile", "-p", "--preserve-date" } },
  { id = "15", program = "stat" },
  { id = "16", program = "du" },
  { id = "17", program = "df" },
  { id = "18", program = "lsblk" },
  { id = "19", program = "blkid", forbid = { "-g", "--garbage-collect", "-c", "--cache-file" } },
  { id = "20", program = "findmnt", forbid = { "-p", "--poll" } },
  { id = "21", program = "free", forbid = { "-s", "--seconds" } },
  { id = "22", program = "uptime" },
  { id = "23", program = "uname" },
  { id = "24", program = "whoami" },
  { id = "25", program = "id" },
  { id = "26", program = "groups" },
  { id = "27", program = "hostname", forbid = { "-F", "--file", "-b", "--boot" },
    max_operands = 0 },
  { id = "28", program = "date", forbid = { "-s", "--set" }, check = "date_prints" },
  { id = "29", program = "which" },
  { id = "30", program = "type" },
  { id = "31", program = "command", args = { "-v|-V" }, max_options = 0 },
  { id = "32", program = "echo" },
  { id = "33", program = "printf", forbid = { "-v" }, check = "printf_plain" },
  { id = "34", program = "realpath" },
  { id = "35", program = "readlink" },
  { id = "36", program = "basename" },
  { id = "37", program = "dirname" },
  { id = "38", program = "tree", forbid = { "-o", "--output", "-R" } },
  { id = "39", program = "rg", forbid = { "--pre", "--hostname-bin" } },
  { id = "40", program = "grep" },
  { id = "41", program = "egrep" },
  { id = "42", program = "fgrep" },
  { id = "43", program = "diff" },
  { id = "44", program = "cmp" },
  { id = "45", program = "sort",
    forbid = { "-o", "--output", "--compress-program", "--files0-from" } },
  { id = "46", program = "uniq", max_operands = 1 },
  { id = "47", program = "cut" },
  { id = "48", program = "tr" },
  { id = "49", program = "column" },
  { id = "50", program = "jq",
    forbid = { "-i", "--in-place", "-f", "--from-file", "-L", "--library-path", "--run-tests",
      "env", "ENV", "include", "import" }, check = "jq_closed" },
  { id = "51", program = "ps", forbid = { "e", "-e", "--format" } },
  { id = "52", program = "ps", args = { "-e|-ef|-eF|-ely|-eLf|-ejH" }, max_operands = 0,
    max_options = 0 },
  { id = "53", program = "pgrep" },
  { id = "54", program = "ss", forbid = { "-K", "--kill", "-D", "--diag" } },
  { id = "55", program = "ip", args = { ADDRESS }, max_operands = 0 },
  { id = "56", program = "ip", args = { ADDRESS, "show|list" } },
  { id = "57", program = "ip", args = { ROUTE }, max_operands = 0 },
  { id = "58", program = "ip", args = { ROUTE, "show|list" } },
  { id = "59", program = "ip", args = { LINK }, max_operands = 0 },
  { id = "60", program = "ip", args = { LINK, "show|list" } },
  { id = "61", program = "journalctl",
    forbid = { "--vacuum*", "--rotate", "--flush", "--sync", "--relinquish-var",
      "--smart-relinquish-var", "--setup-keys", "--update-catalog", "--cursor-file", "-f",
      "--follow", "--image*" } },
  { id = "62", program = "systemctl", args = { SYSTEMCTL }, forbid = REMOTE_HOST },
  { id = "63", program = "systemctl", args = { "--user", SYSTEMCTL }, forbid = REMOTE_HOST },
  { id = "64", program = "systemctl", args = { "show" }, forbid = SHOW, min_operands = 1,
    check = "names_unit" },
  { id = "65", program = "systemctl", args = { "--user", "show" }, forbid = SHOW,
    min_operands = 1, check = "names_unit" },
  { id = "66", program = "git", args = { GIT }, forbid = GIT_FORBID, git = true },
  { id = "67", program = "git", args = { "--no-pager", GIT }, forbid = GIT_FORBID,
    git = true },
  { id = "68", program = "git", args = { "branch" }, forbid = BRANCH_WRITES, max_operands = 0,
    git = true },
  { id = "69", program = "git", args = { "--no-pager", "branch" }, forbid = BRANCH_WRITES,
    max_operands = 0, git = true },
  { id = "70", program = "git", args = { "remote" }, max_operands = 0, git = true },
  { id = "71", program = "git", args = { "--no-pager", "remote" }, max_operands = 0, git = true },
  { id = "72", program = "pacman", args = { "-Q*|--query" } },
  { id = "73", program = "pacman", args = { "-Ss|-Ssq|-Sqs|-Si|-Sii" },
    forbid = { "-y", "-u", "-w", "-c", "--refresh", "--sysupgrade", "--downloadonly",
      "--clean" } },
  { id = "74", program = "lspci", forbid = { "-q", "-Q", "-M" } },
  { id = "75", program = "lsusb" },
  { id = "76", program = "sensors", forbid = { "-s", "--set" } },
  { id = "77", program = "nproc" },
  { id = "78", program = "find",
    forbid = { "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint*", "-fls" } },
  { id = "79", program = "cd" },
  { id = "80", program = "pushd" },
  { id = "81", program = "popd" },
  { id = "82", program = "sed", check = "sed_print_only" },
  { id = "83", program = "git", args = { "tag", "-l|--list" }, git = true },
  { id = "84", program = "git", args = { "stash", "list" }, forbid = GIT_FORBID,
    git = true },
  { id = "85", program = "git", args = { "config", "--get" }, max_operands = 1, max_options = 0,
    git = true },
  { id = "86", program = "whence" },
  { id = "87", program = "xargs", input = "echo" },
}
