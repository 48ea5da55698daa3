#!/usr/bin/env bash
# The plugin in a real zsh in a real terminal: a comma line with everything that a shell would expand
# reaches the model byte for byte, the history shows it as typed, plain lines stay plain shell, and
# nothing of the prompt stands in an argument.
. "$(dirname "$0")/../e2e/lib.sh"
new_home
config auto
# The model answers with the bytes of the prompt in hex, so that the terminal cannot change them.
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local text = last.content[#last.content].text
  return { text = "<" .. text:gsub(".", function(c) return ("%02x"):format(c:byte()) end) .. ">" }
end
EOF
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
terminal 400 50
send() {
    mark
    type_line "$1"
    see "<$(hex "$2")>"
    see 'done in'
}
type_line 'setopt no_hist_ignore_space; HISTSIZE=100'
for text in \
    "don't \"quote\" *.c ?[ab] {a,b} ~ =ls" \
    'history !! !$ ^a^b # a hash #too' \
    'redirect > /etc/x < y | z & ; && || $(touch ran) `touch ran` $HOME \ end' \
    "only an apostrophe '" \
    'ünï “wide” 漢字 🤖'; do
    send ", $text" "$text"
done
# A bare `!!` must not expand to the line before.
mark
type_line ', !!'
see "<$(hex '!!')>"
see 'done in'

# Several rows: typed with Alt+Enter.
mark
keys -l -- ", first 'row"
keys M-Enter
keys -l -- 'second "row" !! $HOME'
keys Enter
see "<$(hex "first 'row
second \"row\" !! \$HOME")>"
see 'done in'

# A word glued to the comma is a prompt; a command of the user's own is not.
send ',run make' 'run make'
type_line ',mine() { print own-$((6*7)) }'
mark
type_line ',mine'
see 'own-42'

# The history shows what was typed.
mark
type_line 'fc -ln -30 > ~/hist; print wrote-$((3+3))'
see 'wrote-6'
hist=$(cat "$HOME/hist")
contains "$hist" "^, don't \"quote\" \*\.c" history
contains "$hist" '^, history !! !\$ \^a\^b # a hash #too' history
contains "$hist" "^, first 'row.n?second|^, first 'row" history
[[ ! -e $HOME/ran && ! -e ran ]] || fail 'a prompt was run as shell'

# The user's options are as before; plain comments are still no comments.
mark
type_line '[[ -o bang_hist && ! -o interactive_comments ]] && print options-$((4+4))'
see 'options-8'

# ,mode is this terminal's; a wrong one is refused with the choices.
mark
type_line ',mode nonsense'
see 'manual, cautious, auto'
type_line ',mode cautious'
see 'mode = cautious'
type_line ',new'
see 'next , line starts a new conversation'
send ', fresh' 'fresh'
equals "$(sqlite3 "$db" 'SELECT count(*) FROM conversations')" 2 'conversations'
equals "$(sqlite3 "$db" "SELECT json_extract(payload, '\$.settings.mode') FROM events
    WHERE kind = 'prompt_queued' ORDER BY seq DESC LIMIT 1")" cautious 'the mode of the prompt'

# A directory whose name is no UTF-8 travels exactly.
mark
mkdir "$P/"$'\377d'
type_line "cd ~/p/\$'\\377d' && print mo\"\"ved"
see 'moved'
send ', where' 'where'
equals "$(sqlite3 "$db" "SELECT json_extract(payload, '\$.context.pwd_b64') FROM events
    WHERE kind = 'prompt_queued' ORDER BY seq DESC LIMIT 1")" \
    "$(printf '%s/\377d' "$P" | base64 -w0)" 'the directory of the prompt'
type_line 'cd'

# A terminal without escape sequences gets none of ours.
mark
type_line 'TERM=dumb; print du""mb'
see 'dumb'
mark
send ', plain' 'plain'
type_line 'print af""ter'
see 'after'
[[ $(tail -c +"$((seen + 1))" "$T/screen") != *$'\e[?25h'* ]] || fail 'a dumb terminal got an escape sequence'
