# What the real zsh makes of lines, for spec/perm/shell_judge.lua. zsh -f shell_judge.zsh INPUT RECORDS
# reads lines that end in NUL, runs each in a subshell of its own in the current (empty) directory,
# and writes records: fields that end in NUL. The only commands are functions that record their words;
# PATH is empty, and a name that is no function is recorded too.
#   R index argc word...   a command that would run       P index 0|1   whether the line parses
#   Z index count word...  the words of ${(z)}, each without its quotes
#   C index 1 text         the line as zsh prints it after it was read, where it parses
# The third word is an option to set, or `print`: then nothing runs and only C is written.
emulate -R zsh
[[ -z $3 || $3 == print ]] || setopt $3
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
if [[ $3 == print ]]; then
  _print $1 $2
  exit 0
fi
_judge $1 $2
typeset -g FUNCNEST=50
_all=("${(@0)$(<$1)}")
exec 9>>$2
for (( _n = 1; _n < $#_all; _n++ )); do
  (
    ulimit -t 1
    { eval "$_all[_n]" } always { TRY_BLOCK_ERROR=0; wait }
  ) </dev/null >/dev/null 2>&1
done
exit 0
