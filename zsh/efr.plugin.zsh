# efr.plugin.zsh: the zsh plugin of efr. `source` this file from ~/.zshrc.
#
# Owns: loading of the parts beside it, once or again (sourcing it twice is safe).
# Must not know: the daemon, the protocol, models. It only hands text to the command `efr`.
# Runs in the user's interactive zsh; no fork per prompt.

[[ -o interactive ]] || return 0
[[ -z ${EFR_HIDDEN_SHELL-} ]] || return 0

typeset -g _efr_dir=${${(%):-%x}:A:h}
source $_efr_dir/state.zsh || return
source $_efr_dir/commands.zsh || return
source $_efr_dir/sticky.zsh || return
source $_efr_dir/typo.zsh || return
source $_efr_dir/accept.zsh || return
source $_efr_dir/hooks.zsh || return
source $_efr_dir/background.zsh || return

if ! whence -p efr >/dev/null; then
  if [[ -x ~/.local/bin/efr ]]; then
    print -ru2 -- "efr: ~/.local/bin is not on PATH; lines that start with a comma stay inactive (path+=(~/.local/bin) before this plugin)"
  else
    print -ru2 -- "efr: the program efr is not on PATH; lines that start with a comma stay inactive (./dev install)"
  fi
fi
:
