# The part of the hidden zsh's integration that must see or set the user's own options; read by
# zshenv without emulation. Each function works under any option. Runs in the hidden zsh.

# Parses the line exactly as eval will: a line that does not parse is known before it would run.
_efrh_preexec() {
  _efrh_begin "$3" || return 0
  if [[ "$_efrh_kind" == contained ]]; then
    if [[ -n "$_efrh_changed" ]]; then _efrh_see_options; fi
    _efrh_show
  fi
  if [[ -n "$_efrh_text" ]]; then
    {
      # The colon: a text of comments alone is no function.
      { functions[_efrh_probe]=":
$_efrh_text" } 2>/dev/null
    } always {
      TRY_BLOCK_ERROR=0
    }
    if ! (( ${+functions[_efrh_probe]} )); then _efrh_bad=parse; fi
  fi
  _efrh_start
}

# The options that say how a line is read and what its words become.
_efrh_see_options() {
  local name
  _efrh_set=()
  for name in autopushd bareglobqual braceccl bsdecho caseglob casematch cbases \
    chasedots chaselinks clobber cprecedences cshjunkieloops cshjunkiequotes equals extendedglob \
    globassign globdots globstarshort globsubst ignorebraces ignoreclosebraces interactivecomments \
    ksharrays kshglob kshzerosubscript magicequalsubst markdirs multifuncdef multios nomatch \
    numericglobsort octalzeroes pathdirs pipefail pushdignoredups pushdminus pushdsilent \
    pushdtohome rcexpandparam rcquotes rematchpcre shfileexpansion shglob shnullcmd shwordsplit \
    shortloops typesetsilent unset warncreateglobal; do
    if [[ -o "$name" ]]; then _efrh_set[$name]=on; else _efrh_set[$name]=off; fi
  done 2>/dev/null
}

# Second precmd hook: options that would take the prompt away, end the shell with a failing line, or
# let `cd` take a name for a variable.
# Its B says that the shell is ready; it comes also when a command sent the prompt itself elsewhere.
_efrh_options() {
  builtin unsetopt local_options zle bang_hist correct correct_all prompt_sp prompt_subst \
    err_exit err_return null_glob csh_null_glob xtrace verbose cdable_vars
  builtin setopt prompt_percent prompt_cr hup
  if [[ -z "$_efrh_stale" ]]; then
    _efrh_mark "A;cl=line"
    _efrh_mark "B;aid=$_efrh_nonce"
  fi
  # Last: until here the prompt's own marks are the ones that would come after an interrupt.
  PS1='%# '
  _efrh_stale=
  _efrh_hooked=1
}

# Timed command: does the work of the hooks should they be gone.
_efrh_timed() {
  if [[ -z "$_efrh_hooked" ]]; then
    _efrh_precmd
    _efrh_options
  fi
}
