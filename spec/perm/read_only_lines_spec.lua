-- Everyday lines over the rows of read-only commands: what runs without a question in cautious, and
-- what must ask.
local calls = require "spec.perm.calls"
local read_only = require "efr.perm.read_only"
local shell = require "efr.perm.shell"

local CLEAN = { git_code = { state = "clean" }, found = calls.FOUND }

local RUN = [==[
git log --format='%h %an' -S signature -- src/*.c
git diff --stat HEAD~1
cat ~/{a,b}
for x in ~/b; do cat $x/a; done
ls
ls -la --color=auto ~/p/app
ls *.c src/**/*.h
pwd
cat README.md docs/*.md
cat -A 'a file' "b file"
head -n 20 a
tail -n +5 a
tail -c 100 a
tail +5 a
tail -5 a+f
wc -lw a b
file -b --mime-type a
stat -c '%s %n' a
du -sh --max-depth=1 .
df -hT
lsblk -o NAME,SIZE
blkid /dev/sda1
findmnt -t ext4
free -m
uptime -p
uname -sr
whoami
id -un
groups
hostname
hostname -f
date
date +%Y-%m-%d
date -d 'next friday' +%F
date -u -R
which -a python3
type ls
command -v cargo
command -V ls
echo 'done; really'
echo a && echo b
printf '%s\n' a 'b c'
printf '%d %s\n' 3 x
realpath ..
readlink -f a
basename /a/b.c .c
dirname /a/b
tree -L 2 -I node_modules
rg -n 'fn main' src
rg --files -g '*.lua'
grep -rn --include='*.c' main .
grep -c '^$' a
egrep 'a|b' f
fgrep -x y f
diff -u a b
diff <(sort a) <(sort b)
cmp -s a b
sort -k2,2 -n a
sort -u a | uniq -c
uniq -d a
cut -d: -f1 /etc/passwd
tr a-z A-Z < a
column -t -s: /etc/passwd
jq -r '.a[] | select(.b > 1)' f.json
jq length f.json
ps aux
ps -ef
ps -u root -o pid,cmd
pgrep -a zsh
ss -tlnp
ip a
ip addr show
ip r
ip route list
ip l
journalctl -b -n 50
journalctl -u nginx --since today
systemctl status nginx
systemctl --user list-units --failed
systemctl cat nginx
systemctl is-active nginx
systemctl show nginx
git status --short
git diff HEAD~1 --stat
git log --oneline -10 -- src
git show HEAD:README.md
git rev-parse --abbrev-ref HEAD
git ls-files '*.lua'
git blame -L 1,20 a.c
git --no-pager log -1
git branch -vv
git branch --list
git remote -v
git tag -l 'v*'
git tag --list
git stash list
git config --get user.name
pacman -Qi zsh
pacman -Ss editor
lspci -nn
lsusb
sensors
nproc --all
find . -name '*.o' -newer Makefile -type f
find src -maxdepth 2 -size +1M -print0
cd src && ls
cd ../.. ; pwd
cd
pushd /tmp && ls; popd
pushd +1
popd -q
sed -n '10,20p' a
sed 's/a/b/g' a
sed -n -e '/x/p' -e '$=' a
sed 1d a
whence -v ls
whence -a git
echo a.c b.c | xargs wc -l
echo src | xargs -n 1 ls
LC_ALL=C sort a
TZ=UTC date
ls > /dev/null 2>&1
grep -q x a && echo yes || echo no
if [[ -f a && -r a ]]; then cat a; else echo none; fi
for f in a b c; do echo "== $f"; head -3 $f; done
wc -l $(git ls-files)
echo "$(pwd) has $(ls | wc -l) files"
cat <<< hello
echo $((6 * 7)) {1..3}
! grep -q x a
[[ -d .git ]]
ls -d *(/) *(.om[1,3])
]==]

local ASK = [==[
git log --show-signature
git show --show-sig HEAD
git log --format='%h %G?'
git log '--pretty=%+GS'
git --no-pager log --format='%(describe)% GK'
git tag -l --format='%(signature:grade)'
git branch --sort=-signature
git stash list --format='%G?'
file -bp a
file --preserve a
journalctl --image=a
systemctl status --image=a
lspci -M
cat ~{root,x}/.ssh/id_rsa
cat {~,x}root/.ssh/id_rsa
cat ~'root'/.ssh/id_rsa
for x in root; do cat ~$x/.ssh/id_rsa; done
for x in ~{root,x}; do cat $x/.ssh/id_rsa; done
cd ~{root,x}
tail -f log
tail -F log
tail +1f log
tail +f log
tail +10cf log
tail -5f log
tail +[1]f log
tail -n 5 --follow=name log
file -C -m a
file --compile
blkid -c /dev/null
blkid -g
findmnt -p
findmnt --poll
free -s 1
hostname evil
hostname -F f
hostname --boot
date -s now
date --set=now
date 010100002020
date -us now
printf -v x y
printf '%d' 'path[$(touch P)1]'
printf '%*d' x 1
tree -o P
tree -R -H . -L 1
rg --pre ./x hi
rg --hostname-bin=./x hi
sort -o P a
sort -oP a
sort --output=P a
sort --outp P a
sort --compress-program=./x a
sort --files0-from=a
uniq a P
uniq -c a P
uniq +1 P
jq -f p.jq a
jq -i . a
jq -L . a
jq '$ENV.TOKEN' a
jq -n env
jq 'include "x"; .' a
jq -n -- '-1,env'
ps axe
ps e
ps -o pid,environ
ps --format x
ps -ef 1
ss -K dst 1.1.1.1
ss --kill
ss -D f
ip link set lo down
ip addr add 1.1.1.1 dev lo
ip route add default via 1.1.1.1
ip -batch f
ip netns exec x ls
ip a flush lo
journalctl --vacuum-size=1M
journalctl --rotate
journalctl -f
journalctl --cursor-file=P
journalctl --flush
journalctl --sync
systemctl stop nginx
systemctl restart nginx
systemctl status -H host
systemctl status --host=h
systemctl show
systemctl show --property=Environment
systemctl show -p Environment x
systemctl --user show
systemctl edit nginx
git -C .. status
git -c core.pager=x log
git push
git commit -m x
git diff --output=P
git log --outp=P
git branch new
git branch -d x
git branch -mf a b
git branch --unset-upstream
git branch --edit-description
git remote add a b
git remote -v update
git tag v1
git tag -d v1
git stash
git stash pop
git stash list --output=P
git config user.name x
git config --get -f x a
git config --get a b
git config --get-all a
git checkout .
git --no-pager -P log
pacman -S zsh
pacman -Syu
pacman -R zsh
pacman -Ss -y x
pacman -Sc
lspci -q
sensors -s
find . -delete
find . -exec cat {} +
find . -ok rm {} \;
find . -fprintf P x
find . -fls P
cd && touch P
pushd /tmp && make
popd; rm a
sed -i s/a/b/ a
sed -n 'w P' a
sed s/a/b/e a
sed s/a/b/w\ P a
sed -f x a
sed p a
sed -s 1d a
sed --in-place 1d a
sed 'r /etc/passwd' a
ls | xargs cat
xargs ls
echo a | xargs rm
echo a | xargs -I{} cat {}
echo a | xargs sort
echo a | xargs sh -c ls
env
env ls
printenv
print x
nice ls
sudo ls
./ls
/bin/ls
ls > a
ls >> a
ls | tee a
ls &
cat $x
cat $HOME/a
$EDITOR a
eval ls
. ./a
(ls)
{ ls; }
ls; touch a
ls `touch a`
PATH=. ls
GIT_DIR=x git status
for f in *; do cat $f; done
for f in a; do rm $f; done
while ls; do pwd; done
ls() { cat a; }
alias ls=rm
[[ -v x ]]
(( x = 1 ))
let x=1
test -f a
[ -f a ]
command ls
whence() { x; }
]==]

local function judge(line)
  local ast = shell.parse(line)
  return ast ~= nil and read_only.judge(ast, CLEAN)
end

local function count(lines)
  local _, found = lines:gsub("\n", "\n")
  return found
end

describe("everyday lines", function()
  it("run when they only read", function()
    for line in RUN:gmatch("[^\n]+") do assert.is_true(judge(line), line) end
    assert.is_true(count(RUN) >= 96)
  end)

  it("ask when they may do more", function()
    for line in ASK:gmatch("[^\n]+") do assert.is_false(judge(line), line) end
    assert.is_true(count(ASK) >= 98)
  end)
end)
