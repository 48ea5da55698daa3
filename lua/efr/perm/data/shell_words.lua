-- Owns: names that the reading of a line knows: builtins of zsh, reserved words, programs that run
-- as another user, names of variables that zsh or a program gives a meaning.
-- Must not know: how a line is read.
-- Data; runs nowhere.

local list = require "efr.util.list"
local text = require "efr.util.text"

local function set(words)
  return list.set(text.split(words, " "))
end

return {
  -- First words that change the shell itself, or run text as code: they make a line opaque.
  opaque_builtins = set("eval exec source . alias unalias builtin fc r trap functions unfunction "
    .. "autoload enable disable zmodload emulate setopt unsetopt set unset export typeset declare "
    .. "local readonly integer float hash unhash rehash coproc noglob nocorrect bindkey zle "
    .. "zstyle compdef -"),
  privileged = set("sudo sudoedit doas su pkexec run0"),
  -- Behind these any later word may be the program.
  wrappers = set("env nice nohup time timeout command builtin exec stdbuf ionice chrt taskset "
    .. "setsid flock xargs watch unbuffer noglob nocorrect -"),
  builtins = set("- . : [ alias autoload bg bindkey break builtin bye cd chdir command continue "
    .. "declare dirs disable disown echo emulate enable eval exec exit export false fc fg float "
    .. "functions getln getopts hash history integer jobs kill let limit local logout noglob popd "
    .. "print printf pushd pushln pwd r read readonly rehash return sched set setopt shift source "
    .. "suspend test times trap true ttyctl type typeset ulimit umask unalias unfunction unhash "
    .. "unlimit unset unsetopt vared wait whence where which zcompile zformat zle zmodload "
    .. "zparseopts zregexparse zstyle"),
  reserved = set("do done esac then elif else fi for case if while function repeat time until "
    .. "select coproc nocorrect foreach end ! [[ { }"),
  directory_changers = set("cd pushd popd chdir"),
  -- Assignments before a command that change only language, time zone or form of the output.
  harmless_names = set("LANG LANGUAGE TZ COLUMNS LINES NO_COLOR TERM CLICOLOR"),
  -- zsh evaluates a value of these as arithmetic, which can run commands.
  numeric_names = set("COLUMNS LINES"),
  -- Lower-case names that zsh, or programs through the environment, give a meaning.
  special_names = set("path cdpath fpath manpath mailpath module_path psvar argv status pipestatus "
    .. "prompt aliases galiases saliases functions commands options parameters modules dirstack "
    .. "history historywords jobdirs jobtexts jobstates userdirs nameddirs usergroups widgets "
    .. "keymaps builtins reswords patchars signals errnos sysparams mapfile funcstack functrace "
    .. "funcfiletrace funcsourcetrace termcap terminfo langinfo histchars watch zsh_eval_context "
    .. "fignore epochtime cpu zsh_scheduled_events zle_bracketed_paste zle_highlight region_active "
    .. "http_proxy https_proxy ftp_proxy all_proxy no_proxy socks_proxy rsync_proxy"),
}
