# accept.zsh: what Enter does with a line that starts with a comma.
#
# Owns: the wrapped accept-line. Prompt text is never parsed as shell:
# - one row: `,` and `,new` are aliases that end in a comment mark, and for this one line
#   interactive_comments is on and bang_hist off, so zsh reads the text as a comment. Screen and
#   history show what was typed.
# - several rows (a comment ends at a newline): the line that zsh reads is only the command word; the
#   typed text stays on the screen as text after the line, and goes into the history as typed.
# Must not know: how the text is sent (commands.zsh).

# _efr_option NAME on|off: sets an option for this line; _efr_restore puts it back.
_efr_option() {
  [[ -o $1 ]] && local was=on || local was=off
  [[ $was == $2 ]] && return
  _efr_options+=("$1 $was")
  [[ $2 == on ]] && setopt $1 || unsetopt $1
}

_efr_restore() {
  local entry
  for entry in "${_efr_options[@]}"; do
    [[ ${entry#* } == on ]] && setopt ${entry% *} || unsetopt ${entry% *}
  done
  _efr_options=()
}

# _efr_split LINE: sets reply=(WORD TEXT) when LINE starts with a comma word or the sticky word, else
# returns 1.
_efr_split() {
  emulate -L zsh
  setopt extended_glob
  local line=${1##[[:blank:]]#} word
  word=${line%%[[:space:]]*}
  [[ $line == ,* || -n $_efr_sticky_word && $word == "$_efr_sticky_word" ]] || return 1
  local text=${line#"$word"}
  text=${${text##[[:space:]]#}%%[[:space:]]#}
  reply=("$word" "$text")
}

# _efr_take LINE: decides about one accepted line. Sets what accept-line needs, and in _efr_wants the
# options of this line; changes BUFFER only where the typed line cannot stand.
_efr_take() {
  emulate -L zsh
  local -a reply
  local REPLY
  _efr_split "$1" || return 0
  local word=$reply[1] text=$reply[2]
  if [[ $word != (,|,new|,mode|,shell|,away|"${_efr_sticky_word:-,}") ]]; then
    # `,word` that zsh can run is the user's own; `,f() {` defines one.
    [[ $word == *'('* || $text == '('* ]] && return 0
    whence -- $word >/dev/null && return 0
    BUFFER=${BUFFER/,/, }
    CURSOR=$#BUFFER
    _efr_split "$BUFFER"
    word=$reply[1] text=$reply[2]
  fi
  [[ $word == (,|,new|"${_efr_sticky_word:-,}") ]] || return 0
  [[ -n $text ]] || return 0
  _efr_saved=$text _efr_has_saved=1
  if [[ $text == *$'\n'* ]]; then
    local blanks=${BUFFER%%[^[:blank:]]*}
    _efr_typed=$BUFFER
    POSTDISPLAY=${BUFFER#$blanks$word}
    BUFFER=$blanks$word
    CURSOR=$#BUFFER
    _efr_wants=('interactive_comments on')
    return 0
  fi
  _efr_wants=('interactive_comments on' 'bang_hist off')
}

# The mark that starts a comment is the third character of histchars.
_efr_alias() {
  local mark=${histchars[3]:-'#'}
  alias -- ,=", $mark"
  alias -- ,new=",new $mark"
  [[ -z $_efr_sticky_word ]] || alias -- $_efr_sticky_word=", $mark"
}

_efr_accept_line() {
  # Only a primary command line: no continuation, no vared.
  if [[ ${CONTEXT-} == start && -z ${PREBUFFER-} ]]; then
    _efr_alias
    local REPLY want
    if [[ ${BUFFER//[[:blank:]]/} == , ]] && _efr_toggle; then
      BUFFER=
      return 0
    elif _efr_typo "$BUFFER"; then
      zle -M "$REPLY"
      return 0
    fi
    (( _efr_sticky )) && _efr_sticky_line
    _efr_wants=()
    _efr_take "$BUFFER"
    # Here, where no option is local.
    for want in "${_efr_wants[@]}"; do
      _efr_option ${want% *} ${want#* }
    done
  fi
  zle _efr_orig_accept_line
}

# The builtin is called by its dot name through a widget of our own, so that plugins that bind
# builtins again do not find ours; another plugin's widget is kept under a private name.
_efr_builtin_accept_line() {
  zle .accept-line
}

_efr_wrap() {
  case ${widgets[accept-line]-} in
    user:_efr_accept_line) ;;
    user:*)
      zle -A accept-line _efr_orig_accept_line
      zle -N accept-line _efr_accept_line ;;
    *)
      zle -N _efr_orig_accept_line _efr_builtin_accept_line
      zle -N accept-line _efr_accept_line ;;
  esac
}
_efr_alias
_efr_wrap
