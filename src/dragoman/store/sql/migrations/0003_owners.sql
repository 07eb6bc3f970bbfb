-- Which caller the id of a task ("task") or context ("context") of an agent was told to first. "seen": when it was
-- last made use of.
CREATE TABLE dragoman_owners (
  upstream {text} NOT NULL,
  kind {text} NOT NULL,
  id {text} NOT NULL,
  owner {text} NOT NULL,
  seen {time} NOT NULL,
  PRIMARY KEY (upstream, kind, id)
);

CREATE INDEX dragoman_owners_seen ON dragoman_owners (seen);
