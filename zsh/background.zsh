# background.zsh: whether the terminal is dark or light, asked once when the plugin is loaded.
#
# Owns: the question (OSC 11, then DA1, whose answer every terminal gives) and EFR_TERMINAL_BG.
# Must not know: what the answer is used for. Sources: xterm's ctlseqs (OSC 11), ECMA-48 (DA).
# Reading until the answer of DA1 keeps a late reply out of the line editor.

# _efr_background_of REPLY: sets REPLY to light or dark; without an answer it is dark.
_efr_background_of() {
  emulate -L zsh
  setopt extended_glob
  local -a match mbegin mend
  local r g b
  REPLY=dark
  [[ $1 == (#b)*$'\e]11;rgb:'([[:xdigit:]]##)/([[:xdigit:]]##)/([[:xdigit:]]##)* ]] || return 0
  # 1 to 4 hexadecimal digits a channel; the first two decide.
  r=$(( 16#${match[1][1,2]} )) g=$(( 16#${match[2][1,2]} )) b=$(( 16#${match[3][1,2]} ))
  (( 299 * r + 587 * g + 114 * b > 127500 )) && REPLY=light
  return 0
}

_efr_background() {
  emulate -L zsh
  setopt extended_glob no_multibyte
  [[ -z ${EFR_TERMINAL_BG-} && -t 0 && -t 1 && ${TERM:-dumb} != dumb ]] || return 0
  zmodload zsh/zselect zsh/datetime 2>/dev/null || return 0
  zselect -t 0 -r 0 && return 0 # a key waits: it is not ours
  local saved got= c REPLY
  saved=$(stty -g 2>/dev/null) && stty -icanon -echo 2>/dev/null || return 0
  {
    print -n '\e]11;?\e\\\e[c'
    local -F until=$(( EPOCHREALTIME + 1 ))
    while (( EPOCHREALTIME < until )) && read -r -s -u 0 -t $(( until - EPOCHREALTIME )) -k 1 c; do
      got+=$c
      [[ $got == *$'\e[?'[0-9\;]#c ]] && break
    done
  } always {
    stty $saved 2>/dev/null
  }
  _efr_background_of "$got"
  typeset -gx EFR_TERMINAL_BG=$REPLY
  # Keys that were typed meanwhile, without the replies: the first line gets them as they were typed.
  if [[ $got == *$'\e[?'[0-9\;]#c ]]; then
    got=${got//$'\e]11;'[^$'\e\a']#($'\e\\'|$'\a')/}
    got=${got%$'\e[?'[0-9\;]#c}
  else
    got=${got%%$'\e'*}
  fi
  typeset -g _efr_typed_ahead=$got
  return 0
}

_efr_background
unfunction _efr_background
