-- Specs of the hidden shell with what users' start-up files do: frameworks, prompts, asynchronous
-- workers, plugins (two real ones of Debian), terminal multiplexers, odd settings. Each shell must
-- answer with the output and status of the line alone, again and again. A real zsh on a real
-- terminal. Not covered: the sandbox.
local shells = require "spec.support.shells"

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 30000
  return world:shell():run(opts)
end

-- What each shell must do, whatever its start-up files did.
local function works(world, pause)
  local function output(line, exit_code)
    local result = run(world, line)
    assert.equal("finished", result.outcome, line .. ": " .. (result.setup_error or result.output))
    assert.equal(exit_code or 0, result.exit_code, line .. ": " .. result.output)
    return result.output
  end
  assert.equal("one\n", output("echo one"))
  output("(exit 3)", 3)
  assert.equal("3\n", output("echo $?"))
  -- A directory whose name would run as a prompt's code, and what direnv and its like read there.
  output("mkdir -p ~/d/'$(touch ~/bad)%{' && cd ~/d/'$(touch ~/bad)%{' && builtin print 'touch ~/bad' >.envrc")
  assert.equal("0\n", output("echo $?"))
  output("cd ~")
  output("git -C ~/d init -q . 2>/dev/null; cd ~/d && cd ~")
  assert.equal("not_started", run(world, "if true").outcome)
  assert.equal("a\nb\n", output("builtin print a\nbuiltin print b"))
  if pause then output("command sleep 1.2") end
  assert.equal("last\n", output("echo last"))
  assert.is_nil(world:read("bad"))
  return output
end

local function case(rc, more)
  return function()
    local opts = { rc = rc }
    for name, value in pairs(more or {}) do opts[name] = value end
    shells.world(opts, function(world)
      if opts.prepare then opts.prepare(world) end
      local output = works(world, opts.pause)
      if opts.check then opts.check(output, world) end
    end)
  end
end

describe("a hidden shell with start-up files like", function()
  it("oh-my-zsh's", case [==[
    autoload -Uz compaudit compinit add-zsh-hook is-at-least url-quote-magic bracketed-paste-magic
    compinit -i -C -d ~/.zcompdump
    setopt auto_cd multios prompt_subst always_to_end auto_menu complete_in_word share_history
    setopt extended_history hist_expire_dups_first hist_ignore_dups hist_ignore_space hist_verify
    setopt long_list_jobs interactive_comments auto_pushd pushd_ignore_dups pushdminus
    HISTFILE=~/.zsh_history HISTSIZE=50000 SAVEHIST=10000
    zle -N self-insert url-quote-magic; zle -N bracketed-paste bracketed-paste-magic
    function title { print -Pn "\e]2;${2:q}\a\e]1;${1:q}\a" }
    function omz_termsupport_precmd { title '%15<..<%~%<<' '%n@%m:%~' }
    function omz_termsupport_preexec { emulate -L zsh; title "${1[(w)1]}" "$2" }
    function omz_termsupport_cwd { print -n "\e]7;file://$HOST$PWD\a" }
    add-zsh-hook -Uz precmd omz_termsupport_precmd; add-zsh-hook -Uz preexec omz_termsupport_preexec
    add-zsh-hook -Uz precmd omz_termsupport_cwd
    function git_prompt_info { local r; r=$(command git symbolic-ref HEAD 2>/dev/null) && echo "($r)" }
    PROMPT='%(?:%{%F{green}%}:%{%F{red}%})%c%{%f%} $(git_prompt_info)'; RPROMPT='$(date)'
    alias -g L='| less' ...=../..; alias ls='ls --color=tty' grep='grep --color=auto' _='sudo '
    bindkey -e; function zle-line-init { echoti smkx }; function zle-line-finish { echoti rmkx }
    zle -N zle-line-init; zle -N zle-line-finish; autoload -U colors && colors
  ]==])

  it("a prompt program's: pre-command functions that time and draw", case [==[
    zmodload zsh/datetime zsh/mathfunc; setopt prompt_subst
    prompt_precmd() { STATUS=$? PIPES=(${pipestatus[@]}); unset ELAPSED
      [[ -z $STARTED ]] || (( ELAPSED = int(rint((EPOCHREALTIME - STARTED) * 1000)) )); unset STARTED
      JOBS=${(%):-%j} }
    prompt_preexec() { STARTED=$EPOCHREALTIME }
    precmd_functions+=(prompt_precmd) preexec_functions+=(prompt_preexec)
    typeset -g PROMPT='$(sh -c "printf %s \"$1\"" x "$PWD" ${STATUS:+"--status=$STATUS"}) ❯ '
    RPROMPT='$(date)' PROMPT2='$(printf ∙)'
    prompt_keymap() { zle reset-prompt }; zle -N zle-keymap-select prompt_keymap; VIRTUAL_ENV_DISABLE_PROMPT=1
  ]==])

  it("an instant prompt's: output caught until the first prompt, a worker behind a pipe", case([==[
    zmodload zsh/system zsh/zpty zsh/zselect 2>/dev/null
    exec {saved1}>&1 {saved2}>&2 >~/caught 2>&1
    instant_precmd() {
      exec >&$saved1 2>&$saved2 {saved1}>&- {saved2}>&-
      precmd_functions=(${precmd_functions:#instant_precmd}); print -rn -- "$(<~/caught)"
    }
    typeset -ga precmd_functions; precmd_functions=(instant_precmd $precmd_functions)
    worker() { local line; while read -r line; do print -r -- "done $line"; done }
    coproc worker; exec {to}>&p {from}<&p; coproc :
    answer() { local line; read -r line <&$1 || { zle -F $1; return 1 }; zle && zle reset-prompt }
    zle -F $from answer; ask() { print -r -- $PWD >&$to }; precmd_functions+=(ask); chpwd_functions+=(ask)
    zpty -b pty_worker 'while read x; do print $x; done' 2>/dev/null
    PROMPT='%F{4}%~%f ' POWERLEVEL=1; setopt no_bg_nice no_check_jobs no_hup monitor; print caught
  ]==], { check = function(output)
    assert.equal("0 1 2\n", output("sh -c 'cd /proc/self/fd && echo 0 1 2'; :"))
  end }))

  it("a plugin manager's: things that load after the prompt", case([==[
    later() { alias ls=false; print() { builtin print LATE }
      preexec_functions+=(hook) precmd_functions+=(hook); PS1='late$(touch ~/bad)'; setopt prompt_subst
      chpwd() { builtin print LATE } }
    hook() { builtin print LATE }
    zmodload zsh/sched; sched +1 later; TRAPALRM() { later }; zle -N turbo later
    load() { exec {turbo}< <(builtin print x); zle -F $turbo later }; precmd_functions+=(load)
  ]==], { pause = true }))

  it("direnv's", case [==[
    direnv() { [[ $1 == export ]] && builtin print -r -- "${DIRENV_DIR:+unset X;}export DIRENV_DIR=-$PWD; $(<.envrc)" }
    _direnv_hook() { trap -- '' SIGINT; eval "$(direnv export zsh 2>/dev/null)"; trap - SIGINT }
    typeset -ag precmd_functions chpwd_functions
    precmd_functions=(_direnv_hook ${precmd_functions[@]}) chpwd_functions=(_direnv_hook ${chpwd_functions[@]})
  ]==])

  it("those that start tmux, but not here", case [==[
    if [[ -z $TMUX && -z $EFR_HIDDEN_SHELL ]]; then exec no_such_tmux; fi
  ]==])

  it("slow ones: the first prompt counts for no call", function()
    shells.world({ rc = "command sleep 3" }, function(world)
      local result = run(world, "echo fine", { timeout_ms = 1000 })
      assert.equal("finished", result.outcome, result.setup_error)
      assert.equal("fine\n", result.output)
    end)
  end)

  it("those whose compinit would ask", case([==[
    fpath=(~/open $fpath); autoload -Uz compinit; compinit -d ~/.zcompdump; echo $?
  ]==], { before = true, zshenv = "mkdir -p -m 777 ~/open; chmod 777 ~/open" }))

  it("those that set -e, nounset, traps and limits", case [==[
    set -e; setopt nounset; trap 'echo TRAP' ZERR; TRAPZERR() { echo TRAP }; TMOUT=1; TRAPALRM() { exit 9 }
    trap 'echo DEBUG' DEBUG; READNULLCMD=false NULLCMD=false; ulimit -c 0; umask 077
    unsetopt ZERR_NOSUCH 2>/dev/null; unfunction TRAPZERR; trap - ZERR DEBUG
  ]==])

  it("those that swallow or ignore signals", case [==[
    TRAPINT() { return 0 }; TRAPQUIT() { return 0 }; trap '' TSTP; trap 'true' USR1 WINCH CHLD
  ]==])

  it("those that change the terminal", case [==[
    stty -ixon -echo intr ^X erase ^H quit undef -icanon raw 2>/dev/null; printf '\e[?1049h\e[?25l\e[1;1r\e(0'
  ]==])

  it("those that define everything anew", case [==[
    for f in cd print echo printf read test true source typeset local unset kill trap; do
      eval "function my_$f { builtin $f \"\$@\" }; alias $f=my_$f"; done; unalias -m '*'
    function command_not_found_handler { print "no $1"; return 127 }
    function zf_mv { false }; alias -g '%#'=x; alias unalias=false unfunction=false
    setopt ksh_arrays sh_word_split null_glob csh_null_glob glob_subst auto_name_dirs cdable_vars rc_quotes
    setopt pushd_to_home auto_continue csh_junkie_loops ignore_braces sh_file_expansion no_multibyte
    unsetopt function_argzero rcs multi_func_def short_loops bare_glob_qual monitor notify
  ]==])

  it("ones that end in an error, with half a line", case [==[
    alias x='y; export GOOD=1
  ]==])

  local PLUGINS <const> = {
    "/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh",
    "/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh",
  }
  it("Debian's own plugins", case("source " .. table.concat(PLUGINS, "\nsource ") .. "\n"
    .. "ZSH_AUTOSUGGEST_USE_ASYNC=1 ZSH_AUTOSUGGEST_STRATEGY=(history completion)\n"
    .. "ZSH_HIGHLIGHT_HIGHLIGHTERS=(main brackets pattern cursor)\n"))
  it("where these plugins are installed", function()
    for _, path in ipairs(PLUGINS) do assert(shells.ports.fs.stat(path)) end
  end)
end)

describe("a hidden shell whose start-up files leave it", function()
  it("for another program: it says what is shown", function()
    shells.world({ rc = "print starting; exec sh -c 'echo no shell here; exec sleep 1000'" }, function(world)
      world:shell()._opts.first_prompt_ms = 1000
      local result = run(world, "echo never")
      assert.equal("setup_failed", result.outcome)
      assert.truthy(result.setup_error:find("no shell here", 1, true))
    end)
  end)

  it("for good: it says what was printed", function()
    shells.world({ rc = "print -u2 broken; exit 4" }, function(world)
      local result = run(world, "echo never")
      assert.equal("setup_failed", result.outcome)
      assert.truthy(result.setup_error:find("broken", 1, true))
    end)
  end)
end)
