-- Owns: what efr knows about programs that write files. Form: efr.perm.programs.
-- Must not know: how a line is read.
-- Data; runs nowhere.

local WRITE <const> = { operands = "write" }
local COMPILER <const> = { outputs = { short = "o", long = { "output" } } }
local UNPACK <const> = { writes_cwd = true }

return {
  rm = WRITE, rmdir = WRITE, mkdir = WRITE, touch = WRITE, mv = { special = "move" },
  chmod = { operands = "write_later" }, chown = { operands = "write_later" },
  chgrp = { operands = "write_later" }, chattr = { operands = "write_later" },
  setfacl = WRITE, truncate = WRITE, tee = WRITE, unlink = WRITE, shred = WRITE,
  mkfifo = WRITE, mknod = WRITE, link = WRITE,
  cp = { special = "copy" }, install = { special = "copy" }, ln = { special = "link" },
  rsync = { special = "copy", network = "remote", prompts = true },
  dd = { outputs_named = { "of" } },
  sed = { pattern = { short = "ef", long = { "expression", "file" } }, in_place = "i",
    in_place_long = "in-place", values = "efl", long_values = { "expression", "file",
      "line-length" }, flags = "nErsuzi", long_flags = { "quiet", "silent", "debug",
      "in-place", "posix", "regexp-extended", "separate", "sandbox", "unbuffered",
      "null-data", "follow-symlinks", "zero-terminated", "help", "version" } },
  perl = { in_place = "i" },
  gcc = COMPILER, cc = COMPILER, clang = COMPILER, ["g++"] = COMPILER, ["c++"] = COMPILER,
  ["clang++"] = COMPILER, ld = COMPILER, as = COMPILER, iconv = COMPILER, objcopy = WRITE,
  strip = WRITE, patch = { outputs = { short = "o", long = { "output" } }, writes_cwd = true },
  gzip = WRITE, gunzip = WRITE, bzip2 = WRITE, bunzip2 = WRITE, xz = WRITE, unxz = WRITE,
  zstd = WRITE, lz4 = WRITE, zip = WRITE,
  make = { moves = { short = "C", long = { "directory" } } },
  ninja = { moves = { short = "C" } },
  tar = { writes_cwd = true, moves = { short = "C", long = { "directory", "cd" } },
    outputs = { short = "f", long = { "file", "index-file" } } },
  unzip = UNPACK, cpio = UNPACK, split = UNPACK, csplit = UNPACK, mktemp = UNPACK,
  uniq = { operands = "last_output" },
  xxd = { operands = "last_output" },
  curl = { network = "always",
    outputs = { short = "ocD", long = { "output", "cookie-jar", "dump-header", "trace",
      "trace-ascii", "stderr", "output-dir", "etag-save", "hsts", "alt-svc" } } },
  wget = { network = "always", writes_cwd = true,
    outputs = { short = "OoPa", long = { "output-document", "output-file", "append-output",
      "directory-prefix", "save-cookies", "warc-file" } } },
  jq = { pattern = { short = "f", long = { "from-file" } } },
  awk = { pattern = { short = "fEe", long = { "file", "exec", "source" } } },
  gawk = { pattern = { short = "fEe", long = { "file", "exec", "source" } },
    outputs = { short = "odp", long = { "pretty-print", "dump-variables", "profile" } } },
  git = { special = "git", network = "git" },
}
