"""What 0.3 and 1.0 cannot say in each other's words, as one table.

Rules of this module:

- One row per thing that has no home on the other side. The dialects put a row's name into ``Notes.lost`` whenever
  they meet it, whatever becomes of it.
- ``carried``: travels under a reserved key and comes back whole. ``dropped``: does not arrive. ``refused``: the call
  fails, because going on would change its meaning. ``assumed``: could mean two things, and is taken for one of them.
  ``equivalent``: said in other words, or by saying nothing.
- An operator may have any loss of a message refused. What a card cannot say is not one: nothing is called by it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Direction = Literal["to 0.3", "to 1.0", "both"]
Outcome = Literal["carried", "dropped", "refused", "assumed", "equivalent"]

#: Reserved metadata keys: a part's file name and media type, the tasks that a message refers to.
FILENAME = "a2a.compat/filename"
MEDIA_TYPE = "a2a.compat/mediaType"
REFERENCES = "a2a.compat/referenceTaskIds"
#: Flag in a part's metadata: its data stands in ``value`` because 0.3 data must be an object.
WRAPPED = "data_part_compat"


class Loss(NamedTuple):
    """One row: a stable name, which way it is met, what is done, and that in words."""

    name: str
    direction: Direction
    outcome: Outcome
    text: str


_ROWS = (
    Loss("tenant", "to 0.3", "dropped", "0.3 has no tenant: only the URL can tell tenants apart"),
    Loss("list-tasks", "to 0.3", "refused", "0.3 cannot list tasks: UnsupportedOperationError"),
    Loss("part-filename", "to 0.3", "carried", f"file name of a text or data part: metadata key {FILENAME}"),
    Loss("part-media-type", "to 0.3", "carried", f"media type of a text or data part: metadata key {MEDIA_TYPE}"),
    Loss(
        "implied-media-type",
        "to 0.3",
        "equivalent",
        "text/plain on text and application/json on data go without saying in 0.3",
    ),
    Loss("non-object-data", "to 0.3", "carried", f"data that is no object: as {{value}} under the flag {WRAPPED}"),
    Loss("reference-task-ids", "to 0.3", "carried", f"referenceTaskIds in the proto shape: metadata key {REFERENCES}"),
    Loss("part-metadata", "to 0.3", "dropped", "metadata of a part, toward a peer that takes no key beyond its proto"),
    Loss("file-name", "to 0.3", "dropped", "name of a file, toward a peer that takes no key beyond its proto"),
    Loss(
        "file-form",
        "both",
        "assumed",
        "a file over 0.3 gRPC or HTTP+JSON, bytes or base64 text of them, with a peer of which that is not known: "
        "bytes, or what the other side does; base64_files and upstream_base64_files settle it",
    ),
    Loss("history-length-zero", "to 0.3", "equivalent", "0 means no limit in 0.3: left out, the history is cut here"),
    Loss("empty-configuration", "to 0.3", "equivalent", "a send configuration that says nothing comes back absent"),
    Loss("stream-return-immediately", "to 0.3", "equivalent", "returnImmediately of a stream, which it is not for"),
    Loss("cancel-metadata", "to 0.3", "dropped", "metadata of CancelTask in the proto shape"),
    Loss("push-paging", "to 0.3", "dropped", "paging of webhook configs, in the kind shape: its list is whole"),
    Loss("device-code-flow", "to 0.3", "dropped", "the OAuth device code flow; its scheme stays without a flow"),
    Loss("pkce-required", "to 0.3", "dropped", "pkceRequired of an authorization code flow"),
    Loss("interface-version", "to 0.3", "dropped", "interfaces of other versions, from the 0.3 card"),
    Loss("card-signature", "both", "dropped", "a signature covers the shape it was made for: sign the new card"),
    Loss("several-oauth-flows", "to 1.0", "carried", "a scheme with several flows becomes one scheme per flow"),
    Loss("push-auth-schemes", "to 1.0", "dropped", "webhook authentication schemes after the first"),
    Loss("call-metadata", "to 1.0", "dropped", "metadata of get, resubscribe and push config calls"),
    Loss("state-transition-history", "to 1.0", "dropped", "capabilities.stateTransitionHistory"),
    Loss("early-final", "to 1.0", "dropped", "final on a state that ends nothing: the stream is closed after it"),
    Loss("unknown-state", "to 1.0", "carried", "state unknown: TASK_STATE_UNSPECIFIED, always written out"),
    Loss("unreadable-timestamp", "to 1.0", "dropped", "a timestamp that is no date and time"),
    Loss("large-integers", "both", "dropped", "digits of integers beyond 2^53 in metadata and data, over gRPC"),
    Loss("zoneless-timestamp", "to 1.0", "carried", "a timestamp without zone is taken as UTC"),
    Loss("unknown-keys", "both", "dropped", "keys that the specification does not know"),
)

#: Every row by its name.
LOSSES: dict[str, Loss] = {row.name: row for row in _ROWS}


_OF_CARDS = frozenset(
    ("device-code-flow", "pkce-required", "interface-version", "card-signature", "several-oauth-flows")
) | {"state-transition-history"}
#: What an operator may name to have it refused.
REFUSABLE = frozenset(row.name for row in _ROWS if row.outcome in ("carried", "dropped", "assumed")) - _OF_CARDS
#: What is refused when every loss is.
DROPPED = frozenset(name for name in REFUSABLE if LOSSES[name].outcome == "dropped")


def as_markdown() -> str:
    """The table as the page ``docs/losses.md``."""
    rows = "".join(f"| `{row.name}` | {row.direction} | {row.outcome} | {row.text} |\n" for row in LOSSES.values())
    return f"""# What a translation cannot carry over as it is

Made from `dragoman.dialects.losses` by `make docs`. *carried*: travels under a reserved key and comes back whole.
*dropped*: does not arrive; logged (the first of a kind as a warning) and counted (`dragoman.ledger`).
*refused*: the call fails with the error named. *assumed*: could mean two things and is taken for one of them; logged
and counted too. *equivalent*: said in other words, nothing is missing.

A gateway may refuse what would be dropped (`losses = "refuse"`), or losses by name (`refuse_losses`), see
[gateway.md](gateway.md); those of cards are not among them.

| name | direction | outcome | what happens |
|---|---|---|---|
{rows}"""
