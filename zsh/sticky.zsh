# sticky.zsh: sticky mode, in which every line goes to the agent.
#
# Owns: the indicator and tag before the typed text (PREDISPLAY, so neither prompt nor history
# changes), the toggle, what Enter makes of a line while the mode is on.
# Must not know: how a comma line is read (accept.zsh) or sent (commands.zsh).

typeset -g _efr_sticky=${_efr_sticky-0}          # 1 while the mode is on
typeset -g _efr_accepted=0                       # 1 from Enter to the next line
typeset -g _efr_sticky_word=${_efr_sticky_word-} # the first word of a sticky line; an alias of `,`

# Sets _efr_indicator, and _efr_sticky_word where the indicator can stand as a word of a line.
_efr_sticky_setup() {
  emulate -L zsh
  setopt extended_glob
  local word default='efr> '
  [[ -o multibyte && ${LC_ALL:-${LC_CTYPE:-${LANG-}}} == (#i)*utf(-|)8* ]] && default='🤖 '
  typeset -g _efr_indicator=${EFR_STICKY_INDICATOR:-$default}
  word=${_efr_indicator%%[[:space:]]#}
  [[ $word != "$_efr_sticky_word" && -n $_efr_sticky_word ]] && unalias -- $_efr_sticky_word 2>/dev/null
  _efr_sticky_word=
  # One plain word that nothing else answers to.
  [[ -n $word && $word != *[[:space:]\;\&\|\<\>\(\)\$\`\\\"\'*?\[\]{}~\#=!^,]* ]] || return 0
  [[ -z ${aliases[$word]-} || ${aliases[$word]} == ', '* ]] || return 0
  [[ -n ${aliases[$word]-} ]] || ! whence -- $word >/dev/null || return 0
  _efr_sticky_word=$word
}

# _efr_sticky_tag: sets REPLY to the terminal's own settings, with a blank after them.
_efr_sticky_tag() {
  REPLY=${_efr_mode:+$_efr_mode }
}

# _efr_predisplay TEXT-OF-TAG INDICATOR: what stands before the typed text, with its looks.
_efr_predisplay() {
  emulate -L zsh
  region_highlight=(${region_highlight:#*memo=efr})
  PREDISPLAY=$1$2
  (( $#1 )) && region_highlight+=("P0 $#1 ${EFR_TAG_STYLE:-fg=8} memo=efr")
  (( $#2 )) && region_highlight+=("P$#1 $#PREDISPLAY ${EFR_STICKY_STYLE:-fg=magenta} memo=efr")
  return 0
}

# Before a line is edited.
_efr_sticky_start() {
  _efr_accepted=0
  _efr_sticky_show
  # Keys of the time before the first line (background.zsh).
  if [[ -n ${_efr_typed_ahead-} ]]; then
    zle -U -- "$_efr_typed_ahead"
    _efr_typed_ahead=
  fi
}

# At each redraw, and after the mode was switched. A line from the history has the word itself where
# the indicator would stand; an accepted line stays as Enter left it.
_efr_sticky_show() {
  local REPLY indicator=$_efr_indicator
  (( _efr_accepted )) && return 0
  if (( _efr_sticky )) && [[ ${CONTEXT-} == start && -z ${PREBUFFER-} ]]; then
    _efr_sticky_tag
    [[ -n $_efr_sticky_word && $BUFFER == "$_efr_sticky_word "* ]] && indicator=
    [[ $PREDISPLAY == "$REPLY$indicator" ]] || _efr_predisplay "$REPLY" "$indicator"
  elif [[ -n ${region_highlight[(r)*memo=efr]-} || $PREDISPLAY == *$_efr_indicator ]]; then
    _efr_predisplay '' ''
  fi
}

# _efr_toggle: switches the mode; returns 1 and says why where it cannot go on.
_efr_toggle() {
  if (( ! _efr_sticky )) && ! whence -p efr >/dev/null; then
    zle -M 'efr: the program efr is not on PATH, so there is no agent mode (./dev install)'
    return 1
  fi
  (( _efr_sticky = ! _efr_sticky ))
  _efr_sticky_show
  return 0
}
_efr_toggle_widget() { _efr_toggle; return 0 }

# _efr_sticky_line: makes of BUFFER the line that runs, and hides of the indicator what then stands
# in the line itself.
_efr_sticky_line() {
  emulate -L zsh
  setopt extended_glob
  local line=$BUFFER REPLY
  _efr_accepted=1
  _efr_sticky_tag
  if [[ $line == [[:space:]]# ]]; then
    return 0
  elif [[ $line == '!'* ]]; then
    BUFFER=${line#'!'}
    _efr_predisplay '' ''
  elif [[ $line == [[:blank:]]#,* ]]; then
    _efr_predisplay '' ''
  elif [[ -n $_efr_sticky_word && $line == [[:blank:]]#${_efr_sticky_word}(|[[:space:]]*) ]]; then
    _efr_predisplay "$REPLY" ''
  elif [[ $line == mode || $line == mode\ (${(j:|:)~_efr_modes}|default) ]]; then
    BUFFER=,$line
    _efr_predisplay '' ''
  elif [[ -n $_efr_sticky_word ]]; then
    BUFFER="$_efr_sticky_word $line"
    _efr_predisplay "$REPLY" ''
  else
    BUFFER=", $line"
    _efr_predisplay "$REPLY" ''
  fi
  CURSOR=$#BUFFER
}

_efr_sticky_setup
zle -N _efr_toggle_widget
bindkey -M emacs '^@' _efr_toggle_widget
bindkey -M viins '^@' _efr_toggle_widget
autoload -Uz add-zle-hook-widget
add-zle-hook-widget line-init _efr_sticky_start
add-zle-hook-widget line-pre-redraw _efr_sticky_show
