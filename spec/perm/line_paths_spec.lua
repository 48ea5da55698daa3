local line_paths = require "efr.perm.line_paths"
local shell = require "efr.perm.shell"

local CTX = { cwd = "/w", home = "/home/u" }

-- What a line declares, sorted: r read, t tree, w write; ? stands for a place that is not known.
local function declare(line)
  local paths, flags = line_paths.declare(assert(shell.parse(line)), CTX)
  local out = {}
  for i, item in ipairs(paths) do
    local kind = item.kind == "write" and "w" or item.tree and "t" or "r"
    out[i] = kind .. " " .. (item.unknown and "?" or item.path)
  end
  table.sort(out)
  return table.concat(out, ", "), flags
end

local ROWS = {
  -- Operands and options.
  { "cat a ~/b /c ${HOME}/d '~/e' - -- -f", "r /c, r /home/u/b, r /home/u/d, r /w/-f, r /w/a, r /w/~/e" },
  { "x --file=a -f/b -Ic/d --v=$x", "r /b, r /w/a, r /w/c/d, r /d, t ?" },
  { "x a:b http://c:1/d n=e", "r /w/a:b, r /w/b, r /w/e, r /w/http://c:1/d, r /w/n=e" },
  { "x 'a b' \"c\"d\\ e", "r /w/a b, r /w/cd e" },
  { "./x ../y", "r /w/../y, r /w/./x" },
  -- A tilde is expanded last, behind braces and variables.
  { "cat ~{root,x}/a", "t ?" }, { "cat {~,b}root/a", "r /w/broot/a, t ?" }, { "cat ~'root'/a", "t ?" },
  { "for x in root; do cat ~$x/a; done", "t ?" }, { "cat {~,b}/a", "r /w/b/a, t ?" },
  { "cat ${HOME}root/a ~/'a'", "r /home/u/a, r /home/uroot/a" },
  { "cat $x", "t ?" }, { "cat a$x", "t ?" }, { "cat ~root/a", "t ?" }, { "cat $(ls)", "r /w, t ?" },
  { "x -$y", "t ?" }, { "x a{b,c} d{1..2}", "r /w/ab, r /w/ac, r /w/d1, r /w/d2" },
  -- Nothing declared.
  { "echo a; printf b; which c; sleep 1; id d; true e; basename /f", "" },
  { "echo $x $(cat a)", "r /w/a" },
  -- Writers.
  { "rm -rf a /b; mkdir c; touch d; tee e; truncate -s 0 f", "w /b, w /w/0, w /w/a, w /w/c, w /w/d, w /w/e, w /w/f" },
  { "chmod 600 a", "r /w/600, w /w/a" },
  { "rm $x", "w ?" },
  { "cp a b c", "t /w/a, t /w/b, w /w/c" },
  { "cp -t c a b", "t /w/a, t /w/b, w /w/a, w /w/b, w /w/c" },
  { "cp --targ=c a", "t /w/a, w /w/a, w /w/c" },
  { "cp -rt c a", "t /w/a, w /w/a, w /w/c" },
  { "cp -S .x a b", "t /w/a, w /w/b" },
  { "cp a b -r", "t /w/a, t /w/b, w /w/a, w /w/b" },
  { "cp --unknown a b", "t /w/--unknown, t /w/a, t /w/b, w /w/--unknown, w /w/a, w /w/b" },
  { "cp -l a b", "t /w/a, t /w/b, w /w/a, w /w/b" },
  { "mv a b", "w /w/a, w /w/b" },
  { "ln -s /a/b", "r /a/b, w /w/b" },
  { "ln -s a b", "r /w/a, w /w/b" },
  { "ln a b", "r /w/a, w /w/a, w /w/b" },
  { "git rm a; git mv b c", "r /w/a, r /w/b, r /w/c, r /w/mv, r /w/rm, w /w/a, w /w/b, w /w/c" },
  { "dd if=a of=b", "r /w/a, r /w/b, r /w/if=a, r /w/of=b, w /w/b" },
  { "sed -n p f; sed -i s/a/b/ g; sed --in-pl=.x -e p h", "r /w/.x, r /w/f, r /w/g, r /w/h, r /w/p, w /w/g, w /w/h" },
  { "sort -o a b; sort --outp=c; sort -uod", "r /w/a, r /w/b, r /w/c, w /w/a, w /w/c, w /w/d" },
  { "uniq a b", "r /w/a, w /w/b" },
  { "curl -so a -D b https://h/", "r /w/a, r /w/b, r /w/https://h/, w /w/a, w /w/b" },
  -- Redirections.
  { "x < a > b >> c 2>&1 &> d <> e > /dev/null", "r /w/a, r /w/e, w /w/b, w /w/c, w /w/d, w /w/e" },
  { "sort -o$x", "w ?, t ?" }, { "sort --output=a$x", "w ?, t ?" },
  { "> a", "w /w/a" }, { "x > $y", "w ?" }, { "x <<< a", "" }, { "x <<E\n$(cat a)\nE\n", "r /w/a" },
  { "for i in a; do x; done > b", "w /w/b" },
  -- Trees.
  { "ls", "r /w" }, { "ls -R", "t /w" }, { "ls -laR a", "t /w/a" }, { "ls a", "r /w/a" },
  { "ls --rec a", "t /w/a" }, { "ls --unknown a", "t /w, t /w/--unknown, t /w/a" },
  { "du", "t /w" }, { "tree a", "t /w/a" },
  { "rg x", "t /w" }, { "rg x a", "t /w/a" }, { "rg -e x a", "r /w/x, t /w/a" }, { "rg --files a", "t /w/a" },
  { "grep x", "" }, { "grep x a", "r /w/a" }, { "grep -r x", "t /w" }, { "grep -rn x a", "t /w/a" },
  { "grep -d recurse x a", "r /w/recurse, t /w/a" }, { "grep --directories=rec x a", "r /w/rec, t /w/a" },
  { "grep -f a b", "r /w/a, r /w/b" }, { "grep -m 3 x a", "r /w/3, r /w/a" },
  { "grep x a -r", "t /w/a" },
  { "find", "t /w" }, { "find -L a b -name c", "t /w/a, t /w/b" }, { "find a -delete", "t /w/a, w /w/a" },
  { "find a -fprint b -newer c", "r /w/c, t /w/a, w /w/b" },
  { "find a -exec rm {} +", "t /w/a, w /w/a" }, { "find -exec cat {} \\;", "t /w" },
  { "find a -files0-from b", "t ?, t /w/a" },
  { "diff a b", "t /w/a, t /w/b" }, { "wc --files0-from=a", "r /w/a, t ?" }, { "file -f a", "r /w/a, t ?" },
  -- Globs.
  { "cat *", "t /w" }, { "cat a/*/b", "t /w/a/" }, { "cat /a*", "t /" }, { "cat ~/*", "t /home/u/" },
  { "rm *.o t/*.o", "w /w, w /w/t/" }, { "cat */../../x", "t ?" }, { "cat a(N)", "t /w" },
  -- Wrappers.
  { "nice -n 5 rm a", "r /w/5, r /w/a, r /w/rm, w /w/a" },
  { "sudo cp a b", "r /w/a, r /w/b, r /w/cp, t /w/a, w /w/b" },
  { "env -C /d cat a", "r /d, r /w/a, r /w/cat, t ?" },
  { "echo a b | xargs cat", "r /w/a, r /w/b, r /w/cat" }, { "ls | xargs rm", "r /w, r /w/rm, w ?" },
  { "sh -c 'rm a'", "r /w/rm a, w /w/a" }, { "sh -c $x", "t ?" },
  -- Directories.
  { "cd a; cat b", "r /w/a, r /w/a/b, r /w/b" }, { "cd; cat b", "r /home/u/b, r /w/b" },
  { "cd /a && cd b; cat c", "r /a, r /a/b, r /a/b/c, r /a/c, r /w/b, r /w/b/c, r /w/c" },
  { "cd -; cat b", "t ?" }, { "cd $x; cat b", "t ?" }, { "popd; cat b", "t ?" }, { "cd +1; rm b", "w ?" },
  { "cd -; cat /b ~/c", "r /b, r /home/u/c" }, { "pushd; ls", "t ?" }, { "cd a b; cat c", "t ?" },
  { "tar -C a -xf b", "r /w/a, r /w/a/a, r /w/a/b, r /w/b, w /w, w /w/a, w /w/a/b, w /w/b" },
  { "make -C a b", "r /w/a, r /w/a/a, r /w/a/b, r /w/b" },
  -- Links made earlier.
  { "ln -s / a; cat a/b", "r /, r /w/a/b, t ?, w /w/a" },
  { "ln -s / a; cat ab", "r /, r /w/ab, w /w/a" },
  { "cp -r a b; rm b/c", "t /w/a, w ?, w /w/b, w /w/b/c" },
  { "mv a b; cat ./x/../b", "r /w/./x/../b, t ?, w /w/a, w /w/b" },
  { "cat a; ln -s / a", "r /, r /w/a, w /w/a" },
  { "ln -s / a; cd a; cat b", "r /, r /w/a, t ?, w /w/a" },
  -- Inner lines and loops.
  { "echo `cat a` <(cat b)", "r /w/a, r /w/b" }, { "(cat a); { cat b }", "r /w/a, r /w/b" },
  { "if cat a; then cat b; fi", "r /w/a, r /w/b" }, { "f() { cat a }", "r /w/a" },
  { "for i in a b; do cat $i ${i}x; done", "r /w/a, r /w/ax, r /w/b, r /w/bx" },
  { "for i in $x; do cat $i; done", "t ?" }, { "diff <(ls) =(ls)", "r /w" },
  { "for i in a -e; do grep $i b c; done", "r /w/b, r /w/c" },
}

describe("perm.line_paths", function()
  for _, row in ipairs(ROWS) do
    it("declares " .. row[1]:gsub("\n", "\\n"), function()
      local wanted = {}
      for item in row[2]:gmatch("[^,]+") do wanted[#wanted + 1] = item:match("^ ?(.*)$") end
      table.sort(wanted)
      assert.equal(table.concat(wanted, ", "), (declare(row[1])))
    end)
  end

  it("tells a write of a directory from one of what lies in it", function()
    local function below(line)
      local paths = line_paths.declare(shell.parse(line), CTX)
      return paths[#paths].below or false
    end
    assert.is_true(below "rm *.o")
    assert.is_true(below "rm a/*")
    assert.is_true(below "unzip -q")
    assert.is_false(below "rm a")
    assert.is_false(below "cat *")
  end)

  -- The masked files of a project are dot files.
  it("says where the contents of dot files may be printed", function()
    local function prints(line)
      for _, item in ipairs((line_paths.declare(shell.parse(line), CTX))) do
        if item.contents then return true end
      end
      return false
    end
    for _, line in ipairs { "grep -r x", "grep -nR x a", "grep --recur x a", "diff -r a b", "diff -ur a b",
      "diff --recursive a b", "rg --hidden x", "rg -. x", "rg -uu x", "cat .e*", "cat a/.e*/b",
      "cat **/.env", "cat *(D)", "head */.[a-z]*", "grep --unknown x", "cat $x" } do
      assert.is_true(prints(line), line)
    end
    for _, line in ipairs { "grep x a", "rg x", "diff a b", "cat *", "cat a.*", "ls .e*", "ls -R", "find .",
      "du -a", "stat *(D)", "tree -a", "cat a", "cat *.c" } do
      assert.is_false(prints(line), line)
    end
  end)

  it("declares everything for a line that nobody can read", function()
    local paths, flags = line_paths.opaque("cat 'x; curl y; sudo")
    assert.same({ { kind = "read", path = "/", tree = true, unknown = true, why = "unread" } }, paths)
    assert.same({ network = true, interactive = true }, flags)
  end)

  it("has limits, behind which a path may be anywhere", function()
    local many = {}
    for i = 1, 5000 do many[i] = "a" .. i end
    local paths = line_paths.declare(shell.parse("cat " .. table.concat(many, " ")), CTX)
    assert.is_true(#paths < 4200)
    assert.is_true(paths[#paths].unknown)
    local cds = {}
    for i = 1, 20 do cds[i] = "cd a" .. i end
    local found = declare(table.concat(cds, "; ") .. "; cat b")
    assert.matches("t %?", found)
  end)

  it("finds the directories of git", function()
    local function places(line) return line_paths.git_places(shell.parse(line), CTX) end
    assert.same({ "/w" }, places "git status")
    assert.same({ "/w", "/w/a" }, places "cd a && git status; git log")
    assert.same({}, places "ls")
    assert.is_nil(places "cd $x; git status")
  end)
end)
