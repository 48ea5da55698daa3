#!/usr/bin/env bash
# ./dev demo: the main job, for real: a zsh with the plugin on a terminal, the daemon, the hidden shell,
# the sandbox, the store. Only the model is scripted (lua/efr/model/demo.lua); it decides from the
# results that it gets, and says so when one is wrong.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/demo/home.sh"
make_home "$build"
cat >"$HOME/.config/efr/config.toml" <<'EOF'
[model]
provider = "scripted"
[permissions]
mode = "auto"
EOF
cp -r "$root/tests/demo/project" "$HOME/words"
cat >"$HOME/.zshrc" <<EOF
PATH=$build/bin:\$PATH
PS1=$'%{\e]133;A\a%}%B%~%b %# '
unsetopt prompt_sp
source $root/zsh/efr.plugin.zsh
cd ~/words
EOF
printf 'efr, from a comma line to a contained command and back. A zsh of its own, throw-away directories.\n\n'
status=0
env -i HOME="$HOME" PATH="$PATH" TERM="${TERM:-dumb}" LANG="${LANG:-C.UTF-8}" SHELL=/bin/zsh USER="$(id -un)" \
    ${NO_COLOR:+NO_COLOR="$NO_COLOR"} \
    python3 "$root/tests/demo/play.py" 60 \
    'efr project add' \
    ", the test fails; please fix it" \
    'sh test.sh; ls ~/efr-demo-outside.txt' || status=$?
if ! (cd "$HOME/words" && sh test.sh >/dev/null); then
    status=1
    printf 'demo: the test still fails\n' >&2
fi
cat <<'EOF'

That was all real but for the model, which is a script. To use a model of yours:
  ./dev install                      then `source` the plugin in ~/.zshrc, as it says
  efr login openai-compatible        only where the server wants a key
and in ~/.config/efr/config.toml:
  [model]
  name = "qwen3-coder"               # left out: the first model that the server lists
  [openai_compatible]
  base_url = "http://localhost:11434/v1"   # Ollama, llama.cpp, vLLM, OpenRouter, ...
EOF
exit $status
