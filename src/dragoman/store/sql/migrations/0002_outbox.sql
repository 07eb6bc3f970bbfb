-- Callbacks of our own at agents, one per task and caller. "reference": a digest of what tells them apart.
-- "touched": when something last happened.
CREATE TABLE dragoman_watches (
  id {text} NOT NULL PRIMARY KEY,
  agent {text} NOT NULL,
  tenant {text} NOT NULL,
  owner {text} NOT NULL,
  task_id {text} NOT NULL,
  reference {text} NOT NULL UNIQUE,
  ended SMALLINT NOT NULL,
  touched {time} NOT NULL,
  record {blob} NOT NULL
);

CREATE INDEX dragoman_watches_found ON dragoman_watches (agent, tenant, owner, task_id);

CREATE INDEX dragoman_watches_leaving ON dragoman_watches (ended, touched);

-- Webhooks, each with its line. "due": when the line is to be served, null if nothing waits. "holder" has the line
-- until "until", and its deliveries up to "taken" in hand; "claim" names this time that it was taken.
CREATE TABLE dragoman_registrations (
  id {text} NOT NULL PRIMARY KEY,
  watch_id {text} NOT NULL REFERENCES dragoman_watches (id) ON DELETE CASCADE,
  record {blob} NOT NULL,
  ended SMALLINT NOT NULL DEFAULT 0,
  created {time} NOT NULL,
  due {time},
  failures INTEGER NOT NULL DEFAULT 0,
  holder {text} NOT NULL DEFAULT '',
  claim {text} NOT NULL DEFAULT '',
  until {time} NOT NULL DEFAULT 0,
  taken BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX dragoman_registrations_watch ON dragoman_registrations (watch_id, created);

CREATE INDEX dragoman_registrations_due ON dragoman_registrations (due);

CREATE INDEX dragoman_registrations_held ON dragoman_registrations (holder);

CREATE INDEX dragoman_registrations_claim ON dragoman_registrations (claim);

-- What is to be told, in the order of the ids of a line. "last": the line ends with it. "part": what tells more may
-- take its place. "died": when it was given up.
CREATE TABLE dragoman_deliveries (
  id {serial},
  registration_id {text} NOT NULL REFERENCES dragoman_registrations (id) ON DELETE CASCADE,
  body {blob} NOT NULL,
  last SMALLINT NOT NULL,
  part SMALLINT NOT NULL,
  dead SMALLINT NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  status INTEGER NOT NULL DEFAULT 0,
  created {time} NOT NULL,
  died {time} NOT NULL DEFAULT 0
);

CREATE INDEX dragoman_deliveries_line ON dragoman_deliveries (registration_id, dead, id);

CREATE INDEX dragoman_deliveries_dead ON dragoman_deliveries (dead, died);
