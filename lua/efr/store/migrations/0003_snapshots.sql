-- What calls did to the files of a root, between two trees of its snapshot store (docs/undo.md), the
-- runs of `efr run`, and the undos. No projections: no event tells of trees.

CREATE TABLE snapshot_spans (
  id INTEGER PRIMARY KEY NOT NULL,
  root TEXT NOT NULL,
  turn_id TEXT NOT NULL, -- or the id of a run
  call_id TEXT NOT NULL,
  conversation_id TEXT,
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'unfinished', 'uncovered')),
  tree_before TEXT,
  tree_after TEXT, -- of an open one: not known
  shared INTEGER NOT NULL CHECK (shared IN (0, 1)), -- another call ran at the same time
  note TEXT, -- why it is not covered
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX snapshot_spans_turn ON snapshot_spans(turn_id, id);
CREATE INDEX snapshot_spans_root ON snapshot_spans(root, id);

CREATE TABLE snapshot_refs (
  turn_id TEXT NOT NULL,
  root TEXT NOT NULL,
  refs TEXT NOT NULL CHECK (json_valid(refs)), -- before the turn and after it
  PRIMARY KEY (turn_id, root)
) STRICT;

CREATE TABLE runs (
  id TEXT PRIMARY KEY NOT NULL,
  line TEXT NOT NULL,
  cwd TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE undos (
  id TEXT PRIMARY KEY NOT NULL,
  turn_id TEXT NOT NULL,
  conversation_id TEXT,
  redo INTEGER NOT NULL CHECK (redo IN (0, 1)),
  status TEXT NOT NULL CHECK (status IN ('open', 'done', 'stopped')),
  entries TEXT NOT NULL CHECK (json_valid(entries)),
  created_at INTEGER NOT NULL,
  finished_at INTEGER
) STRICT;
CREATE INDEX undos_turn ON undos(turn_id);
