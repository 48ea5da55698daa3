# What the real zsh makes of lines, for spec/perm/shell_judge.lua.
# zsh -f shell_judge.zsh INPUT RECORDS PROGRESS [OPTION] reads lines that end in NUL, runs each in a
# subshell of its own in the current (empty) directory, and writes records: fields that end in NUL.
# The only commands are functions that record their words; PATH is empty, and a name that is no
# function is recorded too. Lines run some at a time in a zsh with a process group of its own, which
# ends with all that they left; a line that does not end ends it too, and a fresh one goes on behind
# that line. PROGRESS is an empty file for the number of the line that runs.
#   R index argc word...   a command that would run       P index 0|1   whether the line parses
#   Z index count word...  the words of ${(z)}, each without its quotes
#   C index 1 text         the line as zsh prints it after it was read, where it parses
#   T index 0              the line was ended; it may have run more than was recorded
# OPTION is an option to set, or `print`: then nothing runs and only C is written. The words behind
# it are the first and the last line that such a zsh runs.
emulate -R zsh
[[ -z $4 || $4 == print ]] || setopt $4
zmodload zsh/parameter
# For lines that were changed at random: no flood of processes or of output.
ulimit -u 400
ulimit -f 200000
integer _count=0
_record() {
  # Ends an endless loop.
  (( ++_count < 60 )) || exit 1
  builtin print -rNu9 -- R $_n $# "${@//$'\0'/?}"
}
f() { _record f "$@" }
h() { _record h "$@" }
g() { _record g "$@"; [[ $1 != (no|c) ]] }
command_not_found_handler() { _record "$@" }
_judge() {
  emulate -L zsh
  local -a _lines _words
  local _i
  _lines=("${(@0)$(<$1)}")
  exec 9>>$2
  for (( _i = 1; _i < $#_lines; _i++ )); do
    { functions[_probe]=":
$_lines[_i]" } 2>/dev/null
    print -rNu9 -- P $_i ${+functions[_probe]}
    unfunction _probe 2>/dev/null
    _words=("${(@)${(Z+Cn+)_lines[_i]}}")
    _words=("${(@Q)_words}")
    print -rNu9 -- Z $_i $#_words "${(@)_words//$'\0'/?}"
  done
}
_print() {
  emulate -L zsh
  local -a _lines
  local _i
  _lines=("${(@0)$(<$1)}")
  exec 9>>$2
  for (( _i = 1; _i < $#_lines; _i++ )); do
    { functions[_probe]=$_lines[_i] } 2>/dev/null
    (( ! ${+functions[_probe]} )) || print -rNu9 -- C $_i 1 "$functions[_probe]"
    unfunction _probe 2>/dev/null
  done
}
unalias -m '*'
if [[ $4 == print ]]; then
  _print $1 $2
  exit 0
fi
_run() {
  for (( _n = $1; _n <= $2; _n++ )); do
    print -r -- $_n >>$3
    (
      ulimit -t 1
      { eval "$_all[_n]" } always { TRY_BLOCK_ERROR=0; wait }
    ) </dev/null >/dev/null 2>&1
  done
}
# Lines in one zsh, and seconds for all of them.
integer _lines_each=20 _limit=$JUDGE_LIMIT
_all=("${(@0)$(<$1)}")
exec 9>>$2
if (( $# > 4 )); then
  typeset -g FUNCNEST=50
  _run $5 $6 $3
  exit 0
fi
_judge $1 $2
integer _from=1 _to _status
while (( _from < $#_all )); do
  (( _to = _from + _lines_each < $#_all ? _from + _lines_each - 1 : $#_all - 1 ))
  # It makes the group, and sends the signal to all of it.
  /usr/bin/timeout -s KILL $_limit /bin/zsh -f $0 $1 $2 $3 "$4" $_from $_to </dev/null >/dev/null 2>&1 &
  wait $!
  _status=$?
  kill -KILL -- -$! 2>/dev/null
  if (( _status == 137 )); then
    _to=${${(f)"$(<$3)"}[-1]}
    print -rNu9 -- T $_to 0
  elif (( _status )); then
    print -ru2 -- "lines $_from to $_to: status $_status"
    exit 1
  fi
  (( _from = _to + 1 ))
done
exit 0
