# The shell of one line that runs outside of the sandbox: `zsh -f outside.zsh DIR`.
# Owns: one evaluation of the line in DIR/line, with the variables of DIR/environment (fields that end
# with a NUL, name and value). Must not know: why it may run. Runs with the user's rights, below
# `efr-sbx outside`; without the user's aliases and functions, so that each word is the program that
# the question named.

() {
  builtin local _efr_name _efr_value
  while IFS= read -rd '' _efr_name && IFS= read -rd '' _efr_value; do
    builtin typeset -gx -- "$_efr_name=$_efr_value"
  done <$1/environment
} $1
_efr_line=$(<$1/line)
setopt interactivecomments
shift
builtin eval -- "$_efr_line"
