# commands.zsh: the commands a comma line runs: `,`, `,new`, `,mode`, `,shell`, `,away`.
#
# Owns: the hand-over to `efr`: text and context in the environment of one command, never in its
# arguments (everybody may read /proc/PID/cmdline).
# Must not know: how the line was typed; that is accept.zsh.

# _efr_text WORD...: sets REPLY to the prompt: the text that accept.zsh saved, else (from a script,
# or with aliases off) the words, without the comment mark that the alias may have left.
_efr_text() {
  emulate -L zsh
  if (( _efr_has_saved )); then
    REPLY=$_efr_saved
    _efr_has_saved=0 _efr_saved=
  else
    [[ ${1-} == '#' ]] && shift
    REPLY="$*"
  fi
}

# _efr_run SUBCOMMAND TEXT: runs efr with this terminal's context. Returns efr's status.
_efr_run() {
  emulate -L zsh
  local sub=$1 text=$2 REPLY
  if ! whence -p efr >/dev/null; then
    print -ru2 -- "efr: the program efr is not on PATH; install it with ./dev install"
    return 127
  fi
  _efr_context
  EFR_CONTEXT=$REPLY EFR_PROMPT=$text EFR_LAST_COMMAND=$_efr_last_command \
    EFR_RECENT_COMMANDS="[${(j:,:)_efr_recent}]" EFR_MODE=$_efr_mode command efr $sub
}

function , {
  emulate -L zsh
  local REPLY sub=send rc
  _efr_text "$@"
  if [[ -z ${REPLY//[[:space:]]/} ]]; then
    print -ru2 -- "usage: , TEXT   sends TEXT to the agent of this terminal (,new TEXT: a new conversation)"
    return 2
  fi
  (( _efr_want_new )) && sub=new
  _efr_run $sub "$REPLY"
  rc=$?
  # The wish for a new conversation stays when nothing was sent: usage (2) or no daemon (3).
  [[ $rc == (2|3) ]] || _efr_want_new=0
  return rc
}

function ,new {
  emulate -L zsh
  local REPLY rc
  _efr_text "$@"
  if [[ -z ${REPLY//[[:space:]]/} ]]; then
    _efr_want_new=1
    print -r -- "efr: the next , line starts a new conversation"
    return 0
  fi
  _efr_run new "$REPLY"
  rc=$?
  [[ $rc == (2|3) ]] || _efr_want_new=0
  return rc
}

function ,shell {
  emulate -L zsh
  # No option of efr's: the line was meant as a prompt.
  if (( $# )) && [[ $1 != -* ]]; then
    print -ru2 -- "usage: ,shell [--attach|--interrupt]   shows what runs in the hidden shell (a prompt needs a blank after the comma)"
    return 2
  fi
  command efr shell "$@"
}

function ,away {
  emulate -L zsh
  if (( $# > 1 )) || [[ ${1-on} != (on|off) ]]; then
    print -ru2 -- "usage: ,away [on|off]   questions wait a few minutes only (a prompt needs a blank after the comma)"
    return 2
  fi
  command efr away "$@"
}

function ,mode {
  emulate -L zsh
  local -a modes=($_efr_modes)
  if (( $# > 1 )); then
    print -ru2 -- "usage: ,mode [${(j:|:)modes}|default]"
    return 2
  fi
  if (( $# )); then
    if [[ $1 == default ]]; then
      _efr_mode=
    elif (( ${modes[(Ie)$1]} )); then
      _efr_mode=$1
    else
      print -ru2 -- "efr: $1 is no mode; choices: ${(j:, :)modes}, default"
      return 2
    fi
  fi
  if [[ -n $_efr_mode ]]; then
    print -r -- "mode = $_efr_mode  # this terminal (,mode); choices: ${(j:, :)modes}"
  else
    print -r -- "mode = (unset)  # permissions.mode of config.toml decides; choices: ${(j:, :)modes}"
  fi
}
