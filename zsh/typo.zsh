# typo.zsh: a mistyped command of the plugin is not sent as a prompt.
#
# Owns: which words are near to a command. Must not know: what the commands do.

# Words that one edit may lead to, in this order; of `new` only the letters may be in another order,
# since `,now` is a plausible prompt.
typeset -ga _efr_near_words=(mode)

# _efr_one_edit A B: whether one letter added, dropped or changed, or two neighbours swapped, makes
# B of A.
_efr_one_edit() {
  emulate -L zsh
  local a=$1 b=$2 i
  if (( $#a == $#b )); then
    for (( i = 1; i <= $#a; i++ )); do
      [[ $a[i] == "$b[i]" ]] && continue
      [[ ${a[i+1,-1]} == "${b[i+1,-1]}" ]] && return 0
      [[ $a[i] == "$b[i+1]" && $a[i+1] == "$b[i]" && ${a[i+2,-1]} == "${b[i+2,-1]}" ]]
      return
    done
    return 1
  elif (( $#a == $#b + 1 )); then
    for (( i = 1; i <= $#a; i++ )); do
      [[ ${a[1,i-1]}${a[i+1,-1]} == "$b" ]] && return 0
    done
  elif (( $#a + 1 == $#b )); then
    _efr_one_edit "$b" "$a"
    return
  fi
  return 1
}

# _efr_typo LINE: sets REPLY to the words about it when LINE begins with a mistyped command.
_efr_typo() {
  emulate -L zsh
  setopt extended_glob
  local line=${1##[[:blank:]]#} word name near=
  [[ $line == ,[[:alpha:]]##(|[[:space:]]*) ]] || return 1
  word=${${line%%[[:space:]]*}#,}
  whence -- ,$word >/dev/null && return 1
  for name in $_efr_near_words; do
    _efr_one_edit "$word" $name && near=$name && break
  done
  [[ -z $near && ${(j::)${(os::)word}} == ${(j::)${(os::)${:-new}}} ]] && near=new
  [[ -n $near ]] || return 1
  REPLY="efr: ,$word is no command; did you mean ,$near? \`, $word\` sends a prompt"
}
