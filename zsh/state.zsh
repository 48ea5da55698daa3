# state.zsh: what the plugin remembers of this terminal.
#
# Owns: the terminal's mode, the last shell command with its status and those before it, the saved
# prompt of one line, and the JSON of the context that goes with a prompt.
# Must not know: key bindings, how lines are read.

# Values survive a second sourcing: `:=` keeps what is there.
typeset -g _efr_mode=${_efr_mode-${EFR_MODE-}}   # empty: config.toml decides
typeset -g _efr_last_command=${_efr_last_command-}
typeset -g _efr_last_status=${_efr_last_status-}
typeset -g _efr_line=${_efr_line-}               # the line that runs now
typeset -g _efr_line_ours=${_efr_line_ours-0}    # 1 while that line is one of the plugin's
typeset -g _efr_saved=${_efr_saved-}             # prompt text of the line that was just accepted
typeset -g _efr_has_saved=${_efr_has_saved-0}
typeset -g _efr_typed=${_efr_typed-}             # a line of several rows as it was typed, for the history
typeset -g _efr_want_new=${_efr_want_new-0}      # 1 after a bare `,new`
typeset -ga _efr_recent                          # the commands before the last one, as JSON, newest last
typeset -ga _efr_modes=(manual cautious auto)
typeset -ga _efr_wants                           # options that this line needs, "NAME on|off"
typeset -ga _efr_options                         # options to put back after this line

# _efr_json TEXT: sets REPLY to TEXT as a JSON string (RFC 8259: quote, backslash and U+0000-U+001F).
_efr_json() {
  emulate -L zsh
  setopt no_multibyte
  local s=$1 i c
  s=${s//\\/\\\\}
  s=${s//\"/\\\"}
  if [[ $s == *[$'\x01'-$'\x1f']* ]]; then
    for i in {1..31}; do
      c=${(#)i}
      [[ $s == *$c* ]] && s=${s//$c/\\u00${(l:2::0:)$(( [##16] i ))}}
    done
  fi
  REPLY="\"$s\""
}

# _efr_field NAME VALUE: appends "NAME": VALUE to the local `json` of the caller; an empty value is left out.
_efr_field() {
  [[ -n $2 ]] || return 0
  local REPLY
  _efr_json "$2"
  json+="${json:+,}\"$1\":$REPLY"
}

# _efr_remember COMMAND STATUS: the last command is one of the recent ones now. The newest 10 stay, at
# most 400 characters of each and 4 KiB in all.
_efr_remember() {
  emulate -L zsh
  local REPLY
  _efr_json "${1[1,400]}"
  _efr_recent+=("{\"command\":$REPLY,\"status\":$2}")
  while (( $#_efr_recent > 10 || ${#${(j:,:)_efr_recent}} > 4096 )); do
    shift _efr_recent
  done
}

# _efr_context: sets REPLY to the JSON object of EFR_CONTEXT. The last command is not in it: the
# context is recorded, the command is not.
_efr_context() {
  emulate -L zsh
  local json=
  _efr_field pwd "$PWD"
  _efr_field oldpwd "$OLDPWD"
  _efr_field tty "$TTY"
  _efr_field hostname "$HOST"
  _efr_field ssh_connection "${SSH_CONNECTION-}"
  json+="${json:+,}\"shell_pid\":$$,\"shlvl\":${SHLVL:-1}"
  [[ -n $_efr_last_status ]] && json+=",\"last_status\":$_efr_last_status"
  REPLY="{$json}"
}
