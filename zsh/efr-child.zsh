# The shell of one contained call: `zsh -f efr-child.zsh DIR`, inside the sandbox.
# Owns: replay of the conversation's sandbox state, one evaluation of the line, the report on
# descriptor 3. Must not know: efrd or the host; everything here is untrusted to both.
# DIR holds `line` (the line as it was given); `shell` and `functions.zwc`, what the hidden shell
# defines; `plain`, words that are no alias and no function in this call; and `replay/`, what earlier calls defined: `state` (NUL-separated fields, data only), `names`
# and `functions/`. Functions of both are loaded when they are called.
#
# The line runs at top level, so `local`, `return` and `exit` act as in a script. zsh parses it
# whole before it runs any of it. Names that begin with _efr_ are never reported.

zmodload zsh/parameter zsh/mapfile
typeset -gi _efr_fd
typeset -g _efr_dir=$1 _efr_replay_dir=$1/replay
typeset -ga _efr_lazy=() _efr_known=() _efr_shell=() _efr_fpath=() _efr_on=() _efr_off=()
typeset -gA _efr_exports _efr_functions _efr_aliases
exec {_efr_fd}>&3 3>&-

# $1: kind and fields
_efr_put() {
  builtin print -rNu $_efr_fd -- "$@"
}

# The hidden shell's aliases and functions; its options are for later.
_efr_take_shell() {
  builtin emulate -L zsh
  builtin local -a _efr_f
  _efr_f=("${(@0)mapfile[$_efr_dir/shell]}")
  (( $#_efr_f >= 5 && $#_efr_f % 2 )) || builtin return
  _efr_on=(${=_efr_f[1]}) _efr_off=(${=_efr_f[2]})
  fpath=(${(f)_efr_f[3]})
  if [[ -e $_efr_dir/functions.zwc ]]; then
    fpath=($_efr_dir/functions.zwc $fpath)
    builtin autoload -Uzw $_efr_dir/functions.zwc
  fi
  _efr_fpath=($fpath)
  [[ -z $_efr_f[4] ]] || builtin autoload -Uz -- ${(f)_efr_f[4]}
  _efr_shell=("${(@)${(@k)functions}:#_efr_*}")
  aliases=("${(@)_efr_f[5,-2]}")
}

_efr_replay() {
  builtin emulate -L zsh
  builtin local -a _efr_f
  builtin local _efr_i
  _efr_f=("${(@0)$(<$_efr_replay_dir/state)}")
  for ((_efr_i = 1; _efr_i + 2 <= ${#_efr_f}; _efr_i += 3)); do
    case $_efr_f[_efr_i] in
      export) builtin typeset -gx -- "${_efr_f[_efr_i + 1]}=${_efr_f[_efr_i + 2]}" ;;
      unset) builtin unset -- "${_efr_f[_efr_i + 1]}" ;;
      func) functions[${_efr_f[_efr_i + 1]}]=${_efr_f[_efr_i + 2]} ;;
      unfunc) builtin unfunction -- "${_efr_f[_efr_i + 1]}" ;;
      alias) aliases[${_efr_f[_efr_i + 1]}]=${_efr_f[_efr_i + 2]} ;;
      unalias) builtin unalias -- "${_efr_f[_efr_i + 1]}" ;;
    esac
  done 2>/dev/null
  _efr_lazy=(${(f)"$(<$_efr_replay_dir/names)"})
  (( $#_efr_lazy )) || builtin return
  builtin unfunction -- ${_efr_shell:*_efr_lazy} 2>/dev/null
  builtin autoload -Uz -- $_efr_replay_dir/functions/${^_efr_lazy}
}

# A call with rights beyond the sandbox runs what its question named, and no alias or function of that
# name, wherever it comes from.
_efr_take_plain() {
  builtin emulate -L zsh
  builtin local _efr_n
  for _efr_n in ${(f)mapfile[$_efr_dir/plain]}; do
    builtin unalias -- $_efr_n
    builtin unfunction -- $_efr_n
  done 2>/dev/null
}

# What is there before the line runs, so that only changes are reported. Text of functions that
# were not called yet is never made: with many of them that would cost more than the call.
_efr_remember() {
  builtin emulate -L zsh -o extended_glob
  builtin local _efr_n
  for _efr_n in ${(k)parameters[(R)*export*]}; do
    _efr_exports[$_efr_n]=${(P)_efr_n}
  done
  for _efr_n in "${(@k)functions[(R)^builtin autoload -X*]}"; do
    _efr_functions[$_efr_n]=$functions[$_efr_n]
  done
  _efr_known=("${(@k)functions}")
  _efr_aliases=("${(@kv)aliases}")
}

_efr_report_exports() {
  builtin emulate -L zsh
  builtin local _efr_n
  for _efr_n in ${(k)parameters[(R)*export*]}; do
    case $_efr_n in
      PWD | OLDPWD | SHLVL | _ | EFR_SANDBOX | _efr_*) continue ;;
    esac
    if (( ! $+_efr_exports[$_efr_n] )) || [[ $_efr_exports[$_efr_n] != "${(P)_efr_n}" ]]; then
      _efr_put export "$_efr_n" "${(P)_efr_n}"
    fi
  done
  for _efr_n in ${(k)_efr_exports}; do
    case $_efr_n in
      PWD | OLDPWD | SHLVL | _ | EFR_SANDBOX) continue ;;
    esac
    [[ $parameters[$_efr_n] == *export* ]] || _efr_put unset "$_efr_n"
  done
}

# Whether a function is as it was before the line: kept with its text, or loaded from its file. One of
# the hidden shell's is loaded anew for that.
_efr_is_unchanged() {
  if (( $+_efr_functions[$1] )); then
    [[ $_efr_functions[$1] == "$functions[$1]" ]]
  elif (( $_efr_lazy[(Ie)$1] )); then
    [[ "$(<$_efr_replay_dir/functions/$1)" == "$functions[$1]" ]]
  elif (( $_efr_shell[(Ie)$1] )); then
    builtin local _efr_is=$functions[$1]
    fpath=($_efr_fpath)
    builtin unfunction -- $1
    builtin autoload -Uz +X -- $1
    [[ $functions[$1] == "$_efr_is" ]] && builtin return
    functions[$1]=$_efr_is
    builtin return 1
  else
    builtin return 1
  fi
}

_efr_report_functions() {
  builtin emulate -L zsh -o extended_glob
  builtin local _efr_n
  builtin local -a _efr_now _efr_defined _efr_stubs
  _efr_now=("${(@k)functions}")
  _efr_defined=("${(@k)functions[(R)^builtin autoload -X*]}")
  _efr_stubs=("${(@)_efr_now:|_efr_defined}")
  _efr_stubs=("${(@)_efr_stubs:|_efr_shell}")
  for _efr_n in "${(@)_efr_defined}" "${(@)_efr_stubs:|_efr_lazy}"; do
    [[ -z $_efr_n || $_efr_n == _efr_* || $_efr_n == zshexit ]] && continue
    _efr_is_unchanged "$_efr_n" || _efr_put func "$_efr_n" "$functions[$_efr_n]"
  done
  for _efr_n in "${(@)_efr_known:|_efr_now}"; do
    [[ -z $_efr_n || $_efr_n == _efr_* ]] || _efr_put unfunc "$_efr_n"
  done
}

_efr_report_aliases() {
  builtin emulate -L zsh
  builtin local _efr_n
  for _efr_n in "${(@k)aliases}"; do
    if (( ! $+_efr_aliases[$_efr_n] )) || [[ $_efr_aliases[$_efr_n] != "$aliases[$_efr_n]" ]]; then
      [[ -z $_efr_n || $_efr_n == _efr_* ]] || _efr_put alias "$_efr_n" "$aliases[$_efr_n]"
    fi
  done
  for _efr_n in "${(@k)_efr_aliases}"; do
    (( $+aliases[$_efr_n] )) || _efr_put unalias "$_efr_n"
  done
}

# Runs when this shell ends, however the line ended it; not in subshells.
_efr_at_exit() {
  builtin local -i _efr_status=$?
  (( ZSH_SUBSHELL )) && builtin return
  builtin emulate -L zsh
  _efr_put efr-records v1
  _efr_put cwd "${PWD:A}"
  _efr_report_exports
  _efr_report_functions
  _efr_report_aliases
  _efr_put end $_efr_status
} 2>/dev/null

# In one piece, which zsh reads before any alias is there.
{
  [[ -e $_efr_dir/shell ]] && _efr_take_shell
  [[ -e $_efr_replay_dir/state ]] && _efr_replay
  [[ -e $_efr_dir/plain ]] && _efr_take_plain
  _efr_line=$(<$_efr_dir/line)
  builtin typeset -ga zshexit_functions
  _efr_remember
  zshexit_functions=(_efr_at_exit)
  (( ! $#_efr_off )) || builtin unsetopt -- $_efr_off
  (( ! $#_efr_on )) || builtin setopt -- $_efr_on
  builtin setopt interactivecomments
  builtin shift
  builtin eval -- "$_efr_line"
}
