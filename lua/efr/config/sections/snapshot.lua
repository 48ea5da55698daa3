-- Owns: the settings of [snapshot].
-- Must not know: how they are read.

return {
  name = "snapshot",
  doc = "What efr keeps of the files that a call can write, so that efr undo can bring them back.",
  keys = {
    {
      name = "enabled", type = "boolean", default = true,
      doc = "false: no snapshots, so neither efr diff nor efr undo for what runs from then on.",
    },
    {
      name = "max_file_mib", type = "integer", default = 10, min = 1, max = 1024,
      doc = "Longer files are left out; efr undo names them.",
    },
    {
      name = "max_files", type = "integer", default = 200000, min = 100, max = 5000000,
      doc = "A project with more files and directories gets no snapshot, and the turn says so.",
    },
    {
      name = "keep_turns", type = "integer", default = 50, min = 1, max = 10000,
      doc = "How many turns of a conversation can be undone.",
    },
    {
      name = "max_age_days", type = "integer", default = 30, min = 1, max = 3650,
      doc = "Snapshots of older turns are deleted.",
    },
    {
      name = "max_gib", type = "integer", default = 5, min = 1, max = 1000,
      doc = "Above this size of the snapshots of one project those of the oldest turns go.",
    },
    {
      name = "home_max_files", type = "integer", default = 2000, min = 1, max = 100000,
      doc = "A directory outside of the projects with more files gets no copy before a command.",
    },
    {
      name = "home_max_mib", type = "integer", default = 256, min = 1, max = 65536,
      doc = "The same by the size of its files.",
    },
  },
}
