-- The references that a turn or a run moved: before it and after it. last_id gives its place among the
-- spans.

DROP TABLE snapshot_refs;
CREATE TABLE snapshot_refs (
  turn_id TEXT NOT NULL,
  root TEXT NOT NULL,
  conversation_id TEXT,
  moved TEXT NOT NULL CHECK (json_valid(moved)), -- [{name, before?, after?}]
  shared INTEGER NOT NULL CHECK (shared IN (0, 1)),
  last_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, root)
) STRICT;
