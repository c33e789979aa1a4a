-- What tasks used of what was not counted before. The last number is that of
-- approvals and questions, and what was asked before is counted too.
ALTER TABLE tasks ADD COLUMN output_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN egress_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN cost_micros  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN waiting_us   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN asks         INTEGER NOT NULL DEFAULT 0;
INSERT INTO tasks (tenant, task, actions, run_us, artifact_bytes, asks)
  SELECT tenant, task, 0, 0, 0, count(*) FROM approvals WHERE true GROUP BY tenant, task
  ON CONFLICT DO UPDATE SET asks = excluded.asks;

-- In which turn of its task an action was asked for.
ALTER TABLE actions ADD COLUMN turn INTEGER;
CREATE INDEX actions_of_turn ON actions (tenant, task, turn) WHERE turn IS NOT NULL;

-- Sessions that somebody opened; `logs` has the others too. `rank` is the order
-- in which they were opened, here and below.
CREATE TABLE sessions (
  rank     INTEGER PRIMARY KEY,
  tenant   TEXT NOT NULL,
  id       TEXT NOT NULL,
  log      INTEGER NOT NULL REFERENCES logs,
  user     TEXT NOT NULL,
  parent   TEXT,
  stopping INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  body     BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX sessions_stopping ON sessions (stopping) WHERE stopping = 1;
CREATE INDEX sessions_of_tenant ON sessions (tenant);
CREATE INDEX sessions_of_user ON sessions (tenant, user);
CREATE INDEX sessions_of_parent ON sessions (tenant, parent) WHERE parent IS NOT NULL;

-- Tasks that somebody opened. What tasks used is in `tasks`, which changes with
-- every action: documents would be written again each time.
CREATE TABLE task_records (
  rank     INTEGER PRIMARY KEY,
  tenant   TEXT NOT NULL,
  id       TEXT NOT NULL,
  log      INTEGER NOT NULL REFERENCES logs,
  state    TEXT NOT NULL,
  stopping INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  body     BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX task_records_of_tenant ON task_records (tenant);
CREATE INDEX task_records_of_log ON task_records (log);
CREATE INDEX task_records_open ON task_records (tenant) WHERE state = 'open';
CREATE INDEX task_records_stopping ON task_records (stopping) WHERE stopping = 1;

-- `untold`: it has ended, and no turn was told how.
CREATE TABLE questions (
  rank       INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  log        INTEGER NOT NULL REFERENCES logs,
  root       TEXT NOT NULL,
  task       TEXT NOT NULL,
  topic      TEXT NOT NULL,
  goal       INTEGER NOT NULL,
  asked_of   TEXT NOT NULL,
  state      TEXT NOT NULL,
  untold     INTEGER NOT NULL,
  opened_ms  INTEGER NOT NULL,
  expires_ms INTEGER,
  version    INTEGER NOT NULL,
  body       BLOB NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX questions_of_tenant ON questions (tenant);
CREATE INDEX questions_of_log ON questions (log, opened_ms);
CREATE INDEX questions_of_task ON questions (tenant, task);
CREATE INDEX questions_of_root ON questions (tenant, root);
CREATE INDEX questions_pending ON questions (tenant) WHERE state = 'pending';
CREATE INDEX questions_untold ON questions (tenant, task) WHERE untold = 1;
CREATE INDEX questions_of_topic ON questions (tenant, task, topic, goal) WHERE state IN ('pending', 'answered');
CREATE INDEX questions_due ON questions (expires_ms) WHERE state = 'pending' AND expires_ms IS NOT NULL;

-- Which events are those of tasks and their questions. Those of their actions
-- are found through the actions.
CREATE TABLE task_events (
  log   INTEGER NOT NULL REFERENCES logs,
  task  TEXT NOT NULL,
  event INTEGER NOT NULL REFERENCES events,
  PRIMARY KEY (log, task, event)
) WITHOUT ROWID;

-- What was said in tasks and to questions: erasable, so not in the log.
CREATE TABLE texts (
  text   INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  task   TEXT NOT NULL,
  log    INTEGER NOT NULL REFERENCES logs,
  role   TEXT NOT NULL,
  sha256 BLOB NOT NULL,
  bytes  BLOB,
  UNIQUE (tenant, task, sha256)
);
