#!/usr/bin/env bash
# Sticky mode, typo guard, recent commands and the terminal's background, in a real zsh in tmux: what
# stands on the screen, what reaches the model, what the history keeps.
. "$(dirname "$0")/../e2e/lib.sh"
new_home
config auto
# The model answers with the prompt in hex, or with the recent commands where it is asked for them.
model <<'EOF'
return function(request)
  local last = request.messages[#request.messages]
  local text = last.content[#last.content].text
  if text == "recent" then
    local state = ""
    for _, message in ipairs(request.messages) do
      for _, block in ipairs(message.content) do state = state .. (block.text or "") end
    end
    return { text = "recent:" .. (state:match("alpha%-1.-beta%-2.-gamma%-3") and "in-order" or "WRONG") }
  end
  return { text = "<" .. text:gsub(".", function(c) return ("%02x"):format(c:byte()) end) .. ">" }
end
EOF
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
got() { # got TEXT: the model got these bytes
    see "<$(hex "$1")>"
    see 'done in'
}
export EFR_STICKY_INDICATOR='bot> '
printf 'export EFR_STICKY_INDICATOR="bot> " EFR_TERMINAL_BG=dark\nsetopt interactive_comments\n' >>"$HOME/.zshrc"
terminal 200 50
row() { screen | grep -v '^$' | tail -n 1; }
# on_row PATTERN: waits until the last row of the screen matches.
on_row() {
    python3 "$tests/e2e/until.py" "$limit" "$1\\s*\\Z" tmux -L "$tmux_name" capture-pane -p ||
        fail "no row /$1/: $(row)"
}

# Only a comma switches; the indicator stands before what is typed and is no part of it.
type_line ','
mark
tmux -L "$tmux_name" send-keys -l 'what is "x" *.c !!'
on_row '^%# bot> what is "x" \*\.c !!'
keys Enter
got 'what is "x" *.c !!'
mark
type_line '!print sh""ell-$((6*7))'
see 'shell-42'
contains "$(screen)" '^%# print sh""ell' 'a shell line as it ran'
mark
type_line ', a comma line'
got 'a comma line'
mark
type_line 'mode cautious'
see 'mode = cautious  # this terminal'
mark
tmux -L "$tmux_name" send-keys -l 'mode of transport'
on_row '^%# cautious bot> mode of transport'
keys Enter
got 'mode of transport'
mark
type_line 'mode default'
see 'mode = \(unset\)'
tmux -L "$tmux_name" send-keys 'C-Space'
mark
type_line 'print pl""ain-$((4+4)); fc -ln -8 >~/hist'
see 'plain-8'
lacks "$(row)" 'bot>' 'after the mode was switched off'
hist=$(cat "$HOME/hist")
contains "$hist" '^, what is "x" \*\.c !!$' 'the history (bot> is no word, so a comma stands for it)'
contains "$hist" '^,mode cautious$' history
contains "$hist" '^print sh""ell' 'a shell line in the history'

# An indicator that is one word becomes the first word of the line, and an alias of the comma.
mark
type_line 'EFR_STICKY_INDICATOR="@@ "; source $_efr_dir/efr.plugin.zsh; print so""urced'
see 'sourced'
type_line ','
mark
type_line "it isn't \$HOME"
got "it isn't \$HOME"
mark
keys Up
on_row "^%# @@ it isn't \\\$HOME"
keys C-u
type_line ','
mark
type_line "@@ don't > /x"
got "don't > /x"

# A mistyped command is not sent; a word that may be meant is.
mark
tmux -L "$tmux_name" send-keys -l ',moed auto'
keys Enter
see 'efr: ,moed is no command; did you mean ,mode\? `, moed` sends a prompt'
keys C-u
mark
tmux -L "$tmux_name" send-keys -l ',enw x'
keys Enter
see 'did you mean ,new\?'
keys C-u
mark
type_line ',now what'
got 'now what'

# The commands before the last one go along, without those that a blank hides.
for line in 'print alpha-1' 'print beta-2' 'print gamma-3' 'true'; do
    mark
    type_line "$line; print next-\$((1+1))"
    see 'next-2'
done
mark
type_line ', recent'
see 'recent:in-order'
see 'done in'

# With KSH_ARRAYS and nounset a comma line is the same.
mark
type_line 'setopt ksh_arrays nounset err_return; print op""tions'
see 'options'
mark
type_line ", with 'odd' options"
got "with 'odd' options"
tmux -L "$tmux_name" send-keys 'unsetopt ksh_arrays nounset err_return' Enter

# The background of the terminal, from the replies of terminals.
mark
type_line 'f() { _efr_background_of "$1"; print -r -- "$2 is $REPLY"; }'
# shellcheck disable=SC1003
type_line 'f $'"'"'\e]11;rgb:ffff/ffff/ffff\e\\'"'"' white; f $'"'"'\e]11;rgb:1e/1e/2e\a'"'"' dusk; f "" none'
see 'white is light'
see 'dusk is dark'
see 'none is dark'

# The question itself: tmux answers DA1, so nothing of it reaches the line or the screen.
type_line 'clear'
mark
type_line 'unset EFR_TERMINAL_BG; source $_efr_dir/efr.plugin.zsh; print "bg=$EFR_TERMINAL_BG."'
see 'bg=(dark|light)\.'
type_line 'print still-$((5+5))'
see 'still-10'
lacks "$(screen)" '11;|\[c|rgb:' 'the screen'
# Keys typed while the terminal is asked are those of the next line, Enter too.
mark
type_line 'stty() { command stty "$@"; [[ $1 != -icanon ]] || tmux send-keys "print ah""ead-\$((6+6))" Enter; }; PATH=$PATH'
type_line "export TMUX=\$(command ls -d /tmp/tmux-*/$tmux_name 2>/dev/null | head -n 1),0,0"
type_line 'unset EFR_TERMINAL_BG; source $_efr_dir/efr.plugin.zsh'
see 'ahead-12'
say ok
