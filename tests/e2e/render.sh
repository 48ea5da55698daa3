#!/usr/bin/env bash
# A reply in markdown in a real terminal: what stands on the screen and how it looks, also with
# NO_COLOR and with the colours of config.toml; sequences of the model never reach the terminal; in a
# pipe the reply is the markdown itself.
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'EOF'
return function()
  return { text = table.concat({
    "# A title", "", "Some **bold** text with `code` and [a link](https://example.org/x).", "",
    "- one", "  - two", "", "| Name | Size |", "|---|--:|", "| a | 1 |", "| bb | 22 |", "",
    "```python", "def f():  # comment", "    return 1", "```", "",
    "evil \27[2J\27]0;title\7 \27]8;;file:///etc\27\\end", "",
  }, "\n") }
end
EOF
terminal 60 40
# Without \r and the shell's own lines: from the title to the end line.
shown() { tmux -L "$tmux_name" capture-pane -p | sed -n '/^A title/,/^done in/p' | sed '$d; s/ *$//'; }
look() { tmux -L "$tmux_name" capture-pane -p -e | grep -aF -m 1 -- "$1" || fail "no row with $1"; }

mark
type_line ', show me'
see 'done in'
equals "$(shown)" "$(printf '%s\n' 'A title' '' 'Some bold text with code and a link.' '' '• one' '  ◦ two' '' \
    'Name │ Size' '─────┼─────' 'a    │    1' 'bb   │   22' '' 'python' 'def f():  # comment' \
    '    return 1' '' 'evil ␛[2J␛]0;title␇ ␛]8;;file:///etc␛\end')" 'the screen'
contains "$(look 'A title')" $'\e\\[1;4m\e\\[33mA title' 'the title'
contains "$(look 'Some')" $'\e\\[1mbold' 'bold'
contains "$(look 'Some')" $'\e\\[36mcode' 'code'
contains "$(tail -c +"$((seen + 1))" "$T/screen" | tr -d '\r')" $'\e\\]8;;https://example.org/x\e\\\\' 'the link'
lacks "$(tail -c +"$((seen + 1))" "$T/screen")" $'\e\\]8;;file|\e\\]0;title' 'the output'

tmux -L "$tmux_name" send-keys 'clear; export NO_COLOR=1' Enter
mark
type_line ', again'
see 'done in'
contains "$(look 'Some')" $'text with `code`' 'no colours'
lacks "$(tail -c +"$((seen + 1))" "$T/screen" | sed '1,/A title/d')" $'\e\\[[0-9;]*3[0-7]m' 'no colours'

cat >>"$HOME/.config/efr/config.toml" <<'EOF'
[render.colors]
code = "#ff0000"
heading = 5
EOF
tmux -L "$tmux_name" send-keys 'clear; unset NO_COLOR; export COLORTERM=truecolor' Enter
mark
type_line ', once more'
see 'done in'
contains "$(tail -c +"$((seen + 1))" "$T/screen")" $'\e\\[38;2;255;0;0mcode' 'a colour of the settings'
contains "$(tail -c +"$((seen + 1))" "$T/screen")" $'\e\\[35;1;4mA title' 'the heading of the settings'

out=$(efr new -- piped 2>/dev/null)
contains "$out" '^# A title$' 'the pipe'
contains "$out" '^Some \*\*bold\*\* text with `code`' 'the pipe'
lacks "$out" $'\e' 'the pipe'
say ok
