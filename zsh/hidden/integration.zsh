# Integration of the hidden zsh: marks, and a prompt that runs nobody's code.
#
# Owns: the marks of ux.md 8.4 and the state between calls. Must not know: what a call is for. Its
# names begin with _efrh_. Runs in the hidden zsh; read once by zshenv under `emulate -R zsh -c`, so
# each function here always runs with zsh's default options and extended_glob.
#
# A call: efrd writes $_efrh_dir/run, then types the fixed line `\builtin eval "$_efrh_text"`. preexec
# takes the file away, sets the text from it and prints C; precmd prints the end mark and D with the
# call's nonce. Who takes the file runs the call: a line that was typed twice, or that efrd took back,
# evaluates nothing. A builtin is called as one, because a user may have a function of its name. The prompt itself may carry D too: it comes even when an interrupt cut precmd short
# or a command took the hooks away. Each mark begins with CAN, which ends whatever sequence a command
# left unfinished.

zmodload zsh/system zsh/parameter zsh/sched
zmodload -F zsh/files b:zf_mv b:zf_ln b:zf_rm

typeset -g _efrh_tty _efrh_nonce= _efrh_kind= _efrh_path= _efrh_bad= _efrh_open= _efrh_text=
typeset -gi _efrh_last=0
typeset -g _efrh_path_told= _efrh_git_told= _efrh_sudo=
typeset -ga _efrh_sudo_dirs=(/usr/local/bin /usr/bin /bin /run/wrappers/bin)
typeset -g _efrh_stale= _efrh_hooked= _efrh_ready= _efrh_editor=$EDITOR
typeset -ga _efrh_launcher=() _efrh_jobs=()
# Whether what this shell defines may differ from what contained calls were shown of it.
typeset -g _efrh_changed=1
typeset -gA _efrh_set=()

# A descriptor of our own: a command may redirect the shell's output or lock the terminal.
sysopen -rw -o cloexec -u _efrh_tty /dev/tty

_efrh_mark() {
  builtin print -rn -u $_efrh_tty -- $'\x18\e]133;'$1$'\a'
}

# The text of the mark that names the directory; nothing when it holds control characters.
_efrh_cwd_mark() {
  REPLY=
  [[ $PWD == *[[:cntrl:]]* ]] || REPLY=$'\e]7;kitty-shell-cwd://'$HOST$PWD$'\a'
}

# The prompt that stands while a command runs: the end mark of a contained call, D of this call, A, the
# visible text, B. It counts only when an interrupt or a command kept the hooks from running; they put a
# plain prompt in its place.
_efrh_prompt() {
  local err=${_efrh_bad:+;err=$_efrh_bad} end=
  [[ $_efrh_kind != contained ]] || end=$'\e]133;efr-sbx;'$_efrh_nonce$'\a'
  PS1=$'%{\x18'$end$'\e]133;D;%?;aid='$_efrh_nonce$err$'\a\e]133;A;cl=line\a%}%# %{\e]133;B\a%}'
  PS2=$'%{\x18\e]133;P;k=s;aid='$_efrh_nonce$'\a%}> %{\e]133;B\a%}'
}

# First part of preexec: takes what efrd wants to run. $1 is the line that zsh is about to run. 1: there
# is nothing to run. Only the fixed line itself takes a run: an interrupt can leave a part of a typed
# line before the next one, and together they may mean anything, say an eval within an eval. The nonce
# tells a run that was taken but not opened, because an interrupt came between, from one that was. A
# line that was decided with another PATH, or with other variables for git, does not run.
_efrh_begin() {
  local -a run
  _efrh_text= _efrh_bad= _efrh_hooked=
  [[ $1 == '\builtin eval "$_efrh_text"' ]] || return 1
  builtin zf_mv -f $_efrh_dir/run $_efrh_dir/taken 2>/dev/null
  run=("${(@f)$(<$_efrh_dir/taken)}")
  if [[ -z $run[1] || $run[1] == $_efrh_nonce ]]; then
    _efrh_stale=1
    return 1
  fi
  _efrh_nonce=$run[1] _efrh_kind=$run[2] _efrh_path=$run[3] _efrh_open=1
  _efrh_late_hooks
  _efrh_forget $run[5]
  if [[ -n $run[6] && $run[6] != "=$PATH" ]]; then
    _efrh_bad=path
    return 0
  fi
  if [[ -n $run[8] ]]; then
    local REPLY
    _efrh_git
    if [[ $run[8] != "=$REPLY" ]]; then
      _efrh_bad=git
      return 0
    fi
  fi
  _efrh_sudo=$run[7]
  [[ $_efrh_sudo != (before|both) ]] || _efrh_forget_sudo
  case $_efrh_kind in
    direct)
      _efrh_text=$(<$_efrh_path)
      _efrh_changed=1
      ;;
    contained)
      _efrh_launcher=($run[4] run --call-dir $_efrh_path)
      _efrh_jobs=(${(k)jobstates})
      _efrh_text='"${_efrh_launcher[@]}"'
      ;;
    outside)
      _efrh_launcher=($run[4] outside --call-dir $_efrh_path)
      _efrh_text='"${_efrh_launcher[@]}"'
      ;;
    apply) _efrh_text=_efrh_apply ;;
  esac
}

# Hooks that came between the prompt and this line, from a timed command or a trap: zsh goes on with the
# ones that it found, so they go as functions.
_efrh_late_hooks() {
  local -a others
  others=(${preexec_functions:#_efrh_preexec})
  (( ! $#others )) || builtin unfunction -- $others 2>/dev/null
  _efrh_hooks
}

# The words that a decision trusted mean what they always mean: no alias, no function and no place
# that a command gave them.
_efrh_forget() {
  local -a trusted known
  trusted=(${(s: :)1})
  known=(${(k)aliases} ${(k)dis_aliases})
  known=(${trusted:*known})
  (( ! $#known )) || { builtin unalias -- $known 2>/dev/null; _efrh_changed=1; }
  known=(${(k)functions})
  known=(${trusted:*known})
  (( ! $#known )) || { builtin unfunction -- $known 2>/dev/null; _efrh_changed=1; }
  known=(${(k)commands})
  known=(${trusted:*known})
  (( ! $#known )) || builtin unhash -- $known 2>/dev/null
  known=(${(k)dis_builtins})
  known=(${trusted:*known})
  (( ! $#known )) || builtin enable -- $known 2>/dev/null
  (( ! $#dis_reswords )) || builtin enable -r -- $dis_reswords 2>/dev/null
  # The module zsh/stat has a `stat` that sets parameters.
  (( ! ${+builtins[stat]} )) || builtin disable stat
}

# What sudo and doas remember of a password. Only their usual places count: what lies first in PATH may
# be anything.
_efrh_forget_sudo() {
  local dir
  for dir in $_efrh_sudo_dirs; do
    [[ ! -x $dir/sudo ]] || command $dir/sudo -k
    [[ ! -x $dir/doas ]] || command $dir/doas -L
  done </dev/null &>/dev/null
}

# Functions for a contained call: all that are defined, as one compiled file, which costs the call
# nothing until it calls one; and the names of those that would be loaded from fpath. Not those for
# signals and for the end of a shell, nor what only the line editor calls. At most 4096, and 4 MiB of
# their text.
_efrh_write_functions() {
  local name text
  local -a names
  local -i bytes=0
  stubs=()
  for name text in "${(@kv)functions}"; do
    case $name in
      *[^[:alnum:]_.:+@,%-]* | -* | _efr* | TRAP* | zshexit | precmd) continue ;;
    esac
    if [[ $text == 'builtin autoload -X'* ]]; then
      [[ $name == _* ]] || stubs+=($name)
    elif (( $#names < 4096 && bytes + $#text < 4194304 )); then
      names+=($name)
      bytes+=$#text
    fi
  done
  builtin zf_rm -f $_efrh_dir/functions.zwc $_efrh_dir/new.zwc
  (( ! $#names )) || builtin zcompile -c $_efrh_dir/new $names
  [[ ! -e $_efrh_dir/new.zwc ]] || builtin zf_mv -f $_efrh_dir/new.zwc $_efrh_dir/functions.zwc
}

# What the child shell of a contained call gets of this one: fields that end with a NUL. Options that
# are on, that are off, fpath, names of functions there; then name and text of each alias.
_efrh_write_shell() {
  local name text
  local -a stubs fields
  local -i bytes=0
  _efrh_write_functions
  fields=(
    "${(k)_efrh_set[(R)on]}" "${(k)_efrh_set[(R)off]}"
    "${(pj.\n.)fpath}" "${(pj.\n.)stubs}"
  )
  for name text in "${(@kv)aliases}"; do
    [[ $name$text == *$'\0'* || $name == _efr* ]] && continue
    (( bytes += $#name + $#text, bytes < 1048576 )) || break
    fields+=("$name" "$text")
  done
  builtin print -rN -- "${(@)fields}" >|$_efrh_dir/shell.new
  builtin zf_mv -f $_efrh_dir/shell.new $_efrh_dir/shell
  _efrh_changed=
}

# Shows a contained call what this shell defines: links in the directory that its child shell reads.
_efrh_show() {
  [[ -z $_efrh_changed ]] || _efrh_write_shell
  builtin zf_ln $_efrh_dir/shell $_efrh_path/in/shell
  [[ ! -e $_efrh_dir/functions.zwc ]] \
    || builtin zf_ln $_efrh_dir/functions.zwc $_efrh_path/in/functions.zwc
} 2>/dev/null

# Last part of preexec.
_efrh_start() {
  builtin unfunction _efrh_probe 2>/dev/null
  _efrh_prompt
  _efrh_rearm
  _efrh_mark "C;aid=$_efrh_nonce${_efrh_bad:+;err=$_efrh_bad}"
}

# A contained launcher that was stopped would hold its call open for ever.
_efrh_end_stopped() {
  local job
  for job in ${${(k)jobstates}:|_efrh_jobs}; do
    [[ $jobstates[$job] == suspended:* ]] || continue
    builtin kill -KILL %$job
    builtin disown %$job # its end is no news for a later call
  done 2>/dev/null
}

# Throws away what the command left unread: a late answer to it must never become a command line. By now
# the shell has the terminal, and efrd types an answer only while a program of the command has it.
_efrh_drain() {
  local bytes
  while sysread -t 0 -i $_efrh_tty bytes; do :; done 2>/dev/null
}

# Gives the status of the last command back to $?.
_efrh_status() {
  return $_efrh_last
}

# Closes the call that is open. $1 is its status.
_efrh_end() {
  [[ -n $_efrh_open ]] || return 0
  _efrh_open= _efrh_text=
  local REPLY
  _efrh_drain
  if [[ $_efrh_kind == contained ]]; then
    _efrh_end_stopped
    _efrh_mark "efr-sbx;$_efrh_nonce"
  fi
  _efrh_cwd_mark
  builtin print -rn -u $_efrh_tty -- $'\x18'$REPLY
  _efrh_mark "D;$1;aid=$_efrh_nonce${_efrh_bad:+;err=$_efrh_bad}"
}

# The exported variables that git reads, as one line of NAME=VALUE, each with a unit separator behind,
# and a dot. Control characters become the byte 1, so that no value looks like another variable.
_efrh_git() {
  local name
  REPLY=
  for name in ${(ok)parameters[(I)GIT_*|HOME|XDG_CONFIG_HOME]}; do
    [[ $parameters[$name] != *export* ]] \
      || REPLY+=$name=${${(P)name}//[[:cntrl:]]/$'\x01'}$'\x1f'
  done
  REPLY+=.
}

# Tells efrd where this shell looks for programs, and git's variables. efrd has made the files.
_efrh_report() {
  local REPLY
  _efrh_git
  [[ $REPLY == "$_efrh_git_told" ]] \
    || { builtin print -rn -- "$REPLY" >|$_efrh_dir/git 2>/dev/null && _efrh_git_told=$REPLY }
  [[ -n $_efrh_path_told && $PATH == "$_efrh_path_told" ]] && return 0
  builtin print -rn -- "$PATH" >|$_efrh_dir/path 2>/dev/null && _efrh_path_told=$PATH
}

# Hooks and prompt code of anybody else would run text from directories that a model wrote. With a
# CDPATH `cd` would lead to places that the line does not show.
_efrh_hooks() {
  unfunction -m builtin 2>/dev/null # first, as what follows needs it
  builtin unset -m 'CDPATH|cdpath|RPS1|RPROMPT|RPS2|RPROMPT2|PERIOD|TMOUT|MAIL|MAILPATH|HISTFILE|watch|WATCH'
  builtin unfunction -m 'chpwd|periodic|zshaddhistory' 2>/dev/null
  precmd_functions=(_efrh_precmd _efrh_options) preexec_functions=(_efrh_preexec)
  chpwd_functions=() periodic_functions=() zshaddhistory_functions=()
  functions[precmd]=_efrh_precmd
  builtin unfunction -m 'preexec' 2>/dev/null
  builtin unfunction -m 'eval|emulate' 2>/dev/null
  builtin unalias -m '\[\[|builtin|eval|emulate' 2>/dev/null
  # A timed command runs after the hooks and before the prompt is drawn.
  local -i i
  for (( i = $#zsh_scheduled_events; i > 0; i-- )); do
    [[ $zsh_scheduled_events[i] == *:*_efrh_timed* ]] || builtin sched -$i
  done
  (( ! $#galiases )) || builtin unalias -- "${(@k)galiases}"
  (( ! $#saliases )) || builtin unalias -s -- "${(@k)saliases}"
}

# The list of timed commands belongs to nobody's rc file: when a command takes the hooks away, this
# brings them back before the next prompt. No function can turn xtrace off, a timed command can.
_efrh_rearm() {
  local -i i
  for (( i = $#zsh_scheduled_events; i > 0; i-- )); do
    [[ $zsh_scheduled_events[i] == *:*_efrh_timed* ]] && builtin sched -$i
  done
  builtin sched +0 '\_efrh_timed; \builtin unsetopt xtrace; \_efrh_status'
}

_efrh_pagers() {
  export PAGER=cat GIT_PAGER=cat SYSTEMD_PAGER=cat MANPAGER=cat GH_PAGER=cat BAT_PAGER=cat
  export AWS_PAGER=
  local name
  for name in EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR SUDO_EDITOR SYSTEMD_EDITOR; do
    export $name=$_efrh_editor
  done
}

# First precmd hook, and a timed command should the hooks be gone. The first time it runs after all
# start-up files.
_efrh_precmd() {
  local -i result=$?
  _efrh_last=$result
  [[ -n $_efrh_ready ]] || _efrh_pagers
  # Before the end of the call: who reads that one has ended knows what it left.
  _efrh_report
  if [[ $_efrh_sudo == (after|both) ]]; then
    _efrh_forget_sudo
    _efrh_sudo=
  fi
  _efrh_end $result
  if [[ -z $_efrh_ready ]]; then
    _efrh_ready=1
    builtin ttyctl -f
    _efrh_rearm
  fi
  _efrh_hooks
  return result
}

# Moves the shell and sets variables that came out of a contained call. Data, never
# code: NUL-separated fields.
_efrh_apply() {
  local kind name value
  local -i failed=0
  {
    while IFS= builtin read -rd '' kind; do
      case $kind in
        cwd)
          IFS= builtin read -rd '' value || return 1
          builtin cd -q -- "$value" || failed=1
          ;;
        export)
          IFS= builtin read -rd '' name && IFS= builtin read -rd '' value || return 1
          if [[ $name != [A-Za-z_][A-Za-z0-9_]# ]]; then
            failed=1
          elif [[ ${(Pt)name} == *special* && $name != (TZ|LANG|LC_*) ]]; then
            failed=1
          else
            typeset -gx -- "$name=$value"
          fi
          ;;
        *) return 1 ;;
      esac
    done
  } <$_efrh_path
  return failed
}

# Arms the first prompt. compinit must not ask about directories that others may write.
_efrh_arm() {
  precmd_functions=(_efrh_precmd _efrh_options)
  # The later ones: a prompt hook that efrd had to interrupt takes everything before the prompt along.
  local delay
  for delay in 0 10 11 12; do
    builtin sched +$delay '\_efrh_timed; \builtin unsetopt xtrace; \_efrh_status'
  done
  functions[compinit]=_efrh_compinit' "$@"'
}

_efrh_compinit() {
  builtin unfunction compinit
  autoload -Uz +X compinit && emulate -R zsh -c 'compinit -i "$@"'
  local -i result=$?
  functions[compinit]=_efrh_compinit' "$@"'
  return result
}
