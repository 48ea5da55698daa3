-- The first schema: the event log, its projections, receipts, the outbox and the provider messages
-- of ended turns. Times are microseconds since the epoch, JSON columns are TEXT.
-- Runs as one transaction together with the change of user_version (store/schema.lua).

PRAGMA application_id = 1701212777; -- "efri"

CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  conversation_id TEXT,
  turn_id TEXT,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL CHECK (json_valid(payload)),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_conversation ON events(conversation_id, seq);
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE receipts (
  command_id TEXT PRIMARY KEY NOT NULL,
  method TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'rejected')),
  result TEXT NOT NULL CHECK (json_valid(result)),
  seq INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL CHECK (json_valid(payload)),
  replay_safe INTEGER NOT NULL CHECK (replay_safe IN (0, 1)),
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  done_at INTEGER,
  cancelled_at INTEGER
) STRICT;
CREATE INDEX outbox_open ON outbox(id) WHERE done_at IS NULL AND cancelled_at IS NULL;

-- What each provider must see again, exactly as it was sent. Not a projection.
CREATE TABLE turn_messages (
  conversation_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  message TEXT NOT NULL CHECK (json_valid(message)),
  turn_seq INTEGER NOT NULL,
  PRIMARY KEY (turn_id, position)
) STRICT;
CREATE INDEX turn_messages_conversation ON turn_messages(conversation_id, turn_seq);

-- Projections: each row follows from the events; store/projections.lua is the only writer.

CREATE TABLE conversations (
  id TEXT PRIMARY KEY NOT NULL,
  origin TEXT NOT NULL,
  title TEXT,
  status TEXT NOT NULL CHECK (status IN ('idle', 'running', 'awaiting_approval')),
  tty TEXT,
  shell_pid INTEGER, -- the shell that took the terminal with the newest prompt
  cwd TEXT,
  scope TEXT CHECK (scope IS NULL OR json_valid(scope)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_last_seq ON conversations(last_seq);
CREATE INDEX conversations_tty ON conversations(tty) WHERE tty IS NOT NULL;

CREATE TABLE turns (
  id TEXT PRIMARY KEY NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations(id),
  command_id TEXT,
  prompt TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed',
    'interrupted', 'cancelled', 'withdrawn')),
  queued_seq INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_conversation ON turns(conversation_id, queued_seq);
CREATE INDEX turns_status ON turns(status);
CREATE INDEX turns_queued ON turns(conversation_id, queued_seq) WHERE status = 'queued';
CREATE INDEX turns_running ON turns(conversation_id) WHERE status = 'running';

CREATE TABLE approvals (
  call_id TEXT PRIMARY KEY NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations(id),
  turn_id TEXT NOT NULL,
  summary TEXT NOT NULL,
  diff_preview TEXT,
  status TEXT NOT NULL CHECK (status IN ('pending', 'resolved', 'expired')),
  decision TEXT,
  resolved_by TEXT,
  requested_seq INTEGER NOT NULL,
  requested_at INTEGER NOT NULL,
  resolved_seq INTEGER,
  resolved_at INTEGER
) STRICT;
CREATE INDEX approvals_pending ON approvals(conversation_id, requested_seq)
  WHERE status = 'pending';

CREATE TABLE shells (
  pty_id TEXT PRIMARY KEY NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations(id),
  status TEXT NOT NULL CHECK (status IN ('open', 'exited')),
  cwd TEXT,
  host TEXT,
  pid INTEGER,
  exit_code INTEGER,
  started_seq INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  exited_seq INTEGER,
  exited_at INTEGER
) STRICT;
CREATE INDEX shells_conversation ON shells(conversation_id, started_seq);
CREATE INDEX shells_open ON shells(conversation_id) WHERE status = 'open';

-- Where a rebuild of the projections stands: NULL = they are current, else the next seq to read
-- (0 = start again by clearing them). A later migration sets it to 0.
CREATE TABLE projection_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  rebuild_from INTEGER
) STRICT;
INSERT INTO projection_state (id, rebuild_from) VALUES (1, NULL);
