-- Segments of the recordings of terminals (storage.md 5). Not a projection: no event tells of them.
-- bytes counts output, not the file; it is set when the segment is closed.

CREATE TABLE recording_segments (
  pty_id TEXT NOT NULL,
  start_seq INTEGER NOT NULL,
  path TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  closed_at INTEGER,
  PRIMARY KEY (pty_id, start_seq)
) STRICT, WITHOUT ROWID;
