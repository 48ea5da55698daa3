# The shell of one line that runs outside of the sandbox: `zsh -f outside.zsh DIR`.
# Owns: one evaluation of the line in DIR/line. Must not know: why it may run. Runs with the user's
# rights, below `efr-sbx outside`; without the user's aliases and functions, so that each word is the
# program that the question named.

_efr_line=$(<$1/line)
setopt interactivecomments
shift
builtin eval -- "$_efr_line"
