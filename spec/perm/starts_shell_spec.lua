-- Specs of which lines start a shell or an interpreter that stays.
local starts_shell = require "efr.perm.starts_shell"

describe("a line that starts a shell that stays", function()
  for _, line in ipairs {
    "zsh", "bash -l", "bash -i", "sh -e", "su", "su - bob", "ssh host", "ssh -p 22 me@host", "python3", "python3 -q",
    "node", "psql", "psql -h db shop", "sqlite3 a.db", "sudo -i", "sudo -u bob bash", "sudo su -",
    "env A=1 python3", "timeout 60 irb", "docker run --rm -ti debian", "kubectl exec -i -t pod -- sh", "nice ghci",
    "cd x && python3", "python3 -i x.py", "(redis-cli)",
    "docker attach c", "docker exec -it c sh", "bash -c 'exec python3'",
  } do
    it(line, function() assert.is_true(starts_shell.line(line)) end)
  end
end)

describe("a line that starts none", function()
  for _, line in ipairs {
    "true", "ls bash", "bash -c 'echo x'", "bash x.sh", "sh -ec 'read a'", "su -c 'id' bob", "ssh host uptime",
    "ssh -p 22 host uptime", "python3 x.py", "python3 -c 'print(1)'",
    "python3 -m http.server", "node x.js", "node -e 1",
    "psql -c 'select 1'", "psql --command=x", "sqlite3 a.db .tables", "sudo make install", "sudo -u bob ls",
    "docker exec c ls", "docker ps -it", "echo 1 | python3", "python3 <x.py", "python3 <<<'print(1)'",
    "read -s x", "git add -p", "npm init", "vim x", "'unclosed", "perl -pe s/a/b/ x", "kubectl get pods",
  } do
    it(line, function() assert.is_false(starts_shell.line(line)) end)
  end
end)
