# The shell of one contained call: `zsh -f efr-child.zsh DIR`, inside the sandbox.
# Owns: replay of the conversation's sandbox state, one evaluation of the line, the report on
# descriptor 3. Must not know: efrd or the host; everything here is untrusted to both.
# DIR holds `line` (the line as it was given) and `state` (NUL-separated fields, data only).
#
# The line runs at top level, so `local`, `return` and `exit` act as in a script. zsh parses it
# whole before it runs any of it. Names that begin with _efr_ are never reported.

zmodload zsh/parameter
typeset -gi _efr_fd
exec {_efr_fd}>&3 3>&-

# $1: kind and fields
_efr_put() {
  builtin print -rNu $_efr_fd -- "$@"
}

_efr_replay() {
  builtin emulate -L zsh
  builtin local -a _efr_f
  builtin local _efr_i
  _efr_f=("${(@0)$(<$1)}")
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
}

# What is there before the line runs, so that only changes are reported.
_efr_remember() {
  builtin emulate -L zsh
  builtin local _efr_n
  builtin typeset -gA _efr_exports _efr_functions _efr_aliases
  for _efr_n in ${(k)parameters[(R)*export*]}; do
    _efr_exports[$_efr_n]=${(P)_efr_n}
  done
  _efr_functions=("${(@kv)functions}")
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

# $1: functions or aliases, $2: what was there, $3 and $4: the kinds
_efr_report_changes() {
  builtin emulate -L zsh
  builtin local _efr_n
  builtin local -A _efr_now _efr_before
  _efr_now=("${(@kvP)1}")
  _efr_before=("${(@kvP)2}")
  for _efr_n in ${(k)_efr_now}; do
    [[ $_efr_n == _efr_* || $_efr_n == zshexit ]] && continue
    if (( ! $+_efr_before[$_efr_n] )) || [[ $_efr_before[$_efr_n] != "$_efr_now[$_efr_n]" ]]; then
      _efr_put $3 "$_efr_n" "$_efr_now[$_efr_n]"
    fi
  done
  for _efr_n in ${(k)_efr_before}; do
    [[ $_efr_n == _efr_* ]] || (( $+_efr_now[$_efr_n] )) || _efr_put $4 "$_efr_n"
  done
}

# Runs when this shell ends, however the line ended it; not in subshells.
_efr_at_exit() {
  builtin local -i _efr_status=$?
  (( ZSH_SUBSHELL )) && builtin return
  _efr_put efr-records v1
  _efr_put cwd "${PWD:A}"
  _efr_report_exports
  _efr_report_changes functions _efr_functions func unfunc
  _efr_report_changes aliases _efr_aliases alias unalias
  _efr_put end $_efr_status
} 2>/dev/null

[[ -s $1/state ]] && _efr_replay $1/state
_efr_line=$(<$1/line)
typeset -ga zshexit_functions
_efr_remember
zshexit_functions=(_efr_at_exit)
setopt interactivecomments
shift
builtin eval -- "$_efr_line"
