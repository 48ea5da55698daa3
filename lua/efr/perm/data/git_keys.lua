-- Data: the keys of a git config whose value is a program, a command line, or one more config to
-- read. As git lists them: section and variable in lower case, a subsection as it stands.
-- `unless`: values (in lower case) with which nothing runs. `matches`: only values of this pattern.
-- An alias may start with options, and `-c core.fsmonitor=...` is one.

local OFF <const> = { [""] = true, ["0"] = true, ["false"] = true, no = true, off = true }
local SWITCH <const> = {
  [""] = true, ["0"] = true, ["1"] = true, ["false"] = true, ["true"] = true, no = true,
  yes = true, on = true, off = true,
}

-- A format that shows who signed a commit: git asks gpg or ssh-keygen.
local SIGNER <const> = "%%[-+ ]?G"

return {
  -- section.variable
  plain = {
    ["core.fsmonitor"] = { unless = OFF },
    ["core.hookspath"] = {},
    ["core.sshcommand"] = {},
    ["core.pager"] = {},
    ["core.editor"] = {},
    ["core.askpass"] = {},
    ["core.gitproxy"] = {},
    ["core.alternaterefscommand"] = {},
    ["sequence.editor"] = {},
    ["interactive.difffilter"] = {},
    ["diff.external"] = {},
    ["gpg.program"] = {},
    ["include.path"] = {},
    ["log.showsignature"] = { unless = OFF },
    ["format.pretty"] = { matches = SIGNER },
    ["uploadpack.packobjectshook"] = {},
    ["sendemail.sendmailcmd"] = {},
    ["sendemail.tocmd"] = {},
    ["sendemail.cccmd"] = {},
    ["sendemail.headercmd"] = {},
  },
  -- section.SUBSECTION.variable
  any_subsection = {
    ["diff.textconv"] = {},
    ["diff.command"] = {},
    ["merge.driver"] = {},
    ["gpg.program"] = {},
    ["gpg.defaultkeycommand"] = {},
    ["includeif.path"] = {},
    ["remote.uploadpack"] = {},
    ["remote.receivepack"] = {},
    ["remote.vcs"] = {},
    ["remote.url"] = { matches = "^[%w+.-]+::" },
    ["remote.pushurl"] = { matches = "^[%w+.-]+::" },
    ["submodule.update"] = { matches = "^!" },
    ["difftool.cmd"] = {},
    ["difftool.path"] = {},
    ["mergetool.cmd"] = {},
    ["mergetool.path"] = {},
    ["guitool.cmd"] = {},
    ["browser.cmd"] = {},
    ["man.cmd"] = {},
    ["tar.command"] = {},
    ["trailer.command"] = {},
    ["trailer.cmd"] = {},
    ["hook.command"] = {},
    ["sendemail.sendmailcmd"] = {},
    ["sendemail.tocmd"] = {},
    ["sendemail.cccmd"] = {},
    ["sendemail.headercmd"] = {},
  },
  -- every key of a section, with or without a subsection
  sections = {
    filter = {},
    credential = {},
    protocol = {},
    alias = { matches = "^[!-]" },
    pretty = { matches = SIGNER },
    pager = { unless = SWITCH },
  },
}
