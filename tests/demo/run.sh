#!/usr/bin/env bash
# ./dev run: efrd in the foreground on throw-away directories, until Ctrl+C.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/demo/home.sh"
real_home=$HOME
make_home "$build"
printf '[model]\nprovider = "scripted"\n' >"$HOME/.config/efr/config.toml"
export EFR_HOME=$D/efr
mkdir -p "$EFR_HOME"
mv "$HOME/.config/efr" "$EFR_HOME/config"
cat <<EOF
efrd runs here until Ctrl+C. In another terminal:
  export EFR_HOME=$EFR_HOME PATH=$build/bin:\$PATH
  efr status; efr send hello; source $root/zsh/efr.plugin.zsh
Settings: $EFR_HOME/config/config.toml (the model is scripted; see README for a real one)
EOF
HOME=$real_home efrd --log debug
