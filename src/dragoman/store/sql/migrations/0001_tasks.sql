-- Tasks as they were last saved, and webhook configs. "stamp": the status timestamp, '' if there is none.
-- "ended": 1 once the task is terminal. "saved": when this row was written.
CREATE TABLE dragoman_tasks (
  tenant {text} NOT NULL,
  owner {text} NOT NULL,
  id {text} NOT NULL,
  context_id {text} NOT NULL,
  state {text} NOT NULL,
  stamp {text} NOT NULL,
  ended SMALLINT NOT NULL,
  saved {time} NOT NULL,
  snapshot {blob} NOT NULL,
  PRIMARY KEY (tenant, owner, id)
);

-- A list, with its filters, and its count need this index only.
CREATE INDEX dragoman_tasks_listed ON dragoman_tasks (tenant, owner, stamp DESC, id, context_id, state);

CREATE INDEX dragoman_tasks_context ON dragoman_tasks (tenant, owner, context_id, stamp DESC, id);

-- What goes first when there is too much, and what is too old.
CREATE INDEX dragoman_tasks_leaving ON dragoman_tasks (ended DESC, saved);

CREATE TABLE dragoman_webhooks (
  sequence {serial},
  tenant {text} NOT NULL,
  owner {text} NOT NULL,
  task_id {text} NOT NULL,
  id {text} NOT NULL,
  version {text} NOT NULL,
  saved {time} NOT NULL,
  config {blob} NOT NULL,
  UNIQUE (tenant, owner, task_id, id)
);
