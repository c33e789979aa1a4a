-- Facts about the whole file: its id, the operator's stop.
CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

-- One log for each session, with its last number and hash.
CREATE TABLE logs (
  log     INTEGER PRIMARY KEY,
  tenant  TEXT NOT NULL,
  session TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  head    BLOB NOT NULL,
  UNIQUE (tenant, session)
);

-- `event` is the order in which they were recorded; `seq` is the place in the log.
CREATE TABLE events (
  event  INTEGER PRIMARY KEY,
  log    INTEGER NOT NULL REFERENCES logs,
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  action INTEGER REFERENCES actions,
  body   BLOB NOT NULL,
  hash   BLOB NOT NULL,
  UNIQUE (log, seq)
);
CREATE INDEX events_of_action ON events (action) WHERE action IS NOT NULL;

CREATE TABLE actions (
  action     INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  log        INTEGER NOT NULL REFERENCES logs,
  task       TEXT NOT NULL,
  user       TEXT NOT NULL,
  state      TEXT NOT NULL,
  version    INTEGER NOT NULL,
  body       BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX actions_of_tenant ON actions (tenant);
CREATE INDEX actions_of_log ON actions (log);
CREATE INDEX actions_of_task ON actions (tenant, task);
-- Small, because it holds only what has not ended.
CREATE INDEX actions_open ON actions (state) WHERE state NOT IN ('succeeded', 'failed', 'cancelled');

CREATE TABLE approvals (
  approval   INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  action     INTEGER NOT NULL REFERENCES actions,
  log        INTEGER NOT NULL REFERENCES logs,
  task       TEXT NOT NULL,
  intent     BLOB NOT NULL,
  state      TEXT NOT NULL,
  opened_ms  INTEGER NOT NULL,
  expires_ms INTEGER,
  body       BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX approvals_opened ON approvals (log, opened_ms);
CREATE INDEX approvals_of_tenant ON approvals (tenant);
CREATE INDEX approvals_of_intent ON approvals (tenant, intent, task);
CREATE INDEX approvals_pending ON approvals (tenant) WHERE state = 'pending';
CREATE INDEX approvals_due ON approvals (expires_ms)
  WHERE state IN ('pending', 'approved') AND expires_ms IS NOT NULL;

CREATE TABLE grants (
  rank       INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  user       TEXT NOT NULL,
  session    TEXT,
  expires_ms INTEGER NOT NULL,
  revoked    INTEGER NOT NULL,
  body       BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX grants_not_revoked ON grants (tenant, user, expires_ms) WHERE revoked = 0;

-- What an action was asked with and what came back: erasable, so not in the log.
CREATE TABLE payloads (
  payload INTEGER PRIMARY KEY,
  action  INTEGER NOT NULL REFERENCES actions,
  role    TEXT NOT NULL,
  sha256  BLOB NOT NULL,
  bytes   BLOB,
  UNIQUE (action, sha256)
);

CREATE TABLE keys (
  scope   BLOB PRIMARY KEY,
  request BLOB NOT NULL,
  action  TEXT NOT NULL
) WITHOUT ROWID;

-- When runs of a capability were claimed, for limits on their number.
CREATE TABLE claims (
  tenant     TEXT NOT NULL,
  capability TEXT NOT NULL,
  at_ms      INTEGER NOT NULL,
  action     INTEGER NOT NULL REFERENCES actions,
  PRIMARY KEY (tenant, capability, at_ms, action)
) WITHOUT ROWID;

CREATE TABLE tasks (
  tenant         TEXT NOT NULL,
  task           TEXT NOT NULL,
  actions        INTEGER NOT NULL,
  run_us         INTEGER NOT NULL,
  artifact_bytes INTEGER NOT NULL,
  PRIMARY KEY (tenant, task)
) WITHOUT ROWID;
