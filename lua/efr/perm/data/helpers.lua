-- Owns: the programs that a program of the read-only rows may start by name: egrep is a script
-- around grep, rg -z and file -z unpack, git checks signatures, diff -l makes pages.
-- Must not know: how a name is searched. Data; runs nowhere.

local UNPACKERS <const> = {
  "gzip", "bzip2", "xz", "lzma", "lz4", "zstd", "brotli", "uncompress", "lzip", "lrzip",
}

return {
  egrep = { "grep" },
  fgrep = { "grep" },
  rg = UNPACKERS,
  file = UNPACKERS,
  diff = { "pr" },
  git = { "gpg", "gpgsm", "ssh-keygen" },
}
