#!/usr/bin/env bash
# First run in a real terminal: efr alone says what is missing, efr setup asks and mends it; what it
# wrote works in a new zsh. Without a terminal it changes nothing.
. "$(dirname "$0")/lib.sh"
new_home
cd "$P"
out=$(efr) || fail "efr alone: $?"
contains "$out" '^todo model +openai_compatible.base_url is not set$' 'efr alone'
contains "$out" "^todo plugin +$HOME/.zshrc does not source" 'efr alone'
contains "$out" '^ok +sandbox +works$' 'efr alone'
contains "$out" "^todo project +$P is in no project" 'efr alone'
contains "$out" '^next:  efr setup$' 'efr alone'
[[ -z $(daemon_pid) ]] || fail 'efr alone started a daemon'
! efr setup --check >/dev/null || fail 'something is missing, and --check says nothing'
before=$(cat "$HOME/.zshrc")
out=$(efr setup </dev/null 2>&1) && fail 'setup without a terminal'
contains "$out" 'there is no terminal to ask on' 'without a terminal'
equals "$(cat "$HOME/.zshrc")" "$before" 'without a terminal'
[[ ! -e $HOME/.config/efr/config.toml ]] || fail 'settings were written without a terminal'

# The start-up file lies elsewhere, behind a link, and has a mode of its own and no final newline.
mkdir "$HOME/dotfiles"
printf 'PS1="%%%%# "\n# efr.plugin.zsh is only named here' >"$HOME/dotfiles/zshrc"
chmod 600 "$HOME/dotfiles/zshrc"
ln -sf dotfiles/zshrc "$HOME/.zshrc"
tmux -L "$tmux_name" -f /dev/null new-session -d -x 140 -y 40 "env -u TMUX HOME='$HOME' PATH='$PATH' zsh -f"
: >"$T/screen"
tmux -L "$tmux_name" pipe-pane -o "cat >>'$T/screen'"
answer() {
    see "$1"
    mark
    type_line "$2"
}
type_line "PATH=$EFR_BIN:\$PATH; cd $P; efr setup"
answer 'base URL \[http://localhost:11434/v1\]: ' ''
answer 'name of the model .*: ' 'qwen3:8b'
answer 'want a key\? y/n' n
answer 'to .*zshrc\? \[Y/n\]' ''
see 'next:  efr project add'
contains "$(grep -v '^#' "$HOME/.config/efr/config.toml")" 'base_url = "http://localhost:11434/v1"' settings
contains "$(grep -v '^#' "$HOME/.config/efr/config.toml")" 'name = "qwen3:8b"' settings
[[ -L $HOME/.zshrc ]] || fail 'the link became a file'
equals "$(stat -c %a "$HOME/dotfiles/zshrc")" 600 'the mode'
plugin=$(realpath "$(dirname "$tests")/zsh/efr.plugin.zsh")
equals "$(tail -n 2 "$HOME/dotfiles/zshrc")" $'# efr.plugin.zsh is only named here\nsource '"'$plugin'" 'the start-up file'
mark
type_line 'efr project add >/dev/null && efr setup; print rc=$?.'
see 'rc=0\.'
lacks "$(tail -c +"$((seen + 1))" "$T/screen" | plain)" 'todo|base URL' 'when all is there'
mark
type_line "exec env -u TMUX HOME='$HOME' zsh -i"
type_line ',mode auto'
see 'mode = auto'
say ok
