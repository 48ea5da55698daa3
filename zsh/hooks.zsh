# hooks.zsh: precmd, preexec and zshaddhistory of the plugin.
#
# Owns: the last command with its status, the options of one line, the history entry of a prompt of
# several rows, notices of the daemon, the cursor after an efr run that was killed.
# Must not know: how lines are read or sent.

_efr_is_ours() {
  emulate -L zsh
  setopt extended_glob
  local line=${1##[[:space:]]#}
  [[ $line == (,|,new|,mode|,shell|,away)(|[[:space:]]*) ]] && return 0
  [[ -n $_efr_sticky_word && $line == ${_efr_sticky_word}(|[[:space:]]*) ]]
}

_efr_preexec() {
  _efr_restore
  _efr_line=$1
  _efr_is_ours "$1" && _efr_line_ours=1 || _efr_line_ours=0
}

_efr_precmd() {
  local last=$?
  # The name is kept in a variable that no option changes: precmd runs with the user's options.
  (( _efr_line_ours )) && [[ -t 1 && $TERM != dumb ]] && print -n '\e[?25h'
  _efr_restore
  _efr_saved= _efr_has_saved=0 _efr_typed=
  if [[ -n $_efr_line ]]; then
    if (( ! _efr_line_ours )); then
      # A line that hist_ignore_space hides is not handed on as one of the recent ones.
      [[ -z $_efr_last_status || -z $_efr_last_command ]] ||
        [[ -o hist_ignore_space && $_efr_last_command == ' '* ]] ||
        _efr_remember "$_efr_last_command" $_efr_last_status
      _efr_last_command=$_efr_line _efr_last_status=$last
    fi
    _efr_line=
  fi
  _efr_notices
  return 0
}

# A prompt of several rows runs as its command word alone; the history gets what was typed.
_efr_zshaddhistory() {
  [[ -n $_efr_typed ]] || return 0
  local typed=$_efr_typed
  _efr_typed=
  [[ -o hist_ignore_space && $typed == ' '* ]] || print -sr -- "$typed"
  return 1
}

# Lines that the daemon left for this terminal. Renamed first, so a line written meanwhile starts a
# new file.
_efr_notices() {
  emulate -L zsh
  local dir REPLY
  if [[ -n ${EFR_RUNTIME_DIR-} ]]; then dir=$EFR_RUNTIME_DIR
  elif [[ -n ${EFR_HOME-} ]]; then dir=$EFR_HOME/runtime
  elif [[ -n ${XDG_RUNTIME_DIR-} ]]; then dir=$XDG_RUNTIME_DIR/efr
  elif [[ -d /run/user/$UID/efr ]]; then dir=/run/user/$UID/efr
  else dir=$HOME/.local/state/efr/run
  fi
  local file=$dir/notices/${${TTY#/dev/}//\//-}
  [[ -s $file ]] || return 0
  zmodload -F zsh/files b:zf_mv b:zf_rm 2>/dev/null || return 0
  zf_mv -f -- $file $file.shown.$$ 2>/dev/null || return 0
  print -r -- "$(<$file.shown.$$)"
  zf_rm -f -- $file.shown.$$ 2>/dev/null
}

autoload -Uz add-zsh-hook
add-zsh-hook precmd _efr_precmd
add-zsh-hook preexec _efr_preexec
add-zsh-hook zshaddhistory _efr_zshaddhistory
