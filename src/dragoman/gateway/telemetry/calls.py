"""The record of one call, as the log shows it. It has no payload, and nothing that a caller showed to be let in."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that is over.

    ``time``: of its end, seconds of the epoch. ``face_in``: the caller's, ``face_out``: the agent's, empty while it
    cannot be reached. ``outcome``: ``ok``, ``cancelled`` for a caller who went away, else the error's name.
    ``ms``: how long it took. ``task``, ``context``: ids, where they were seen. ``caller``: its name, if verified.
    ``losses``: names, as in the table of losses. ``events``: of a stream. ``trace``: id of its trace.
    """

    time: float
    upstream: str
    operation: str
    face_in: str
    face_out: str = ""
    outcome: str
    ms: float
    task: str = ""
    context: str = ""
    caller: str = ""
    losses: tuple[str, ...] = ()
    events: int | None = None
    trace: str = ""


#: Where records go.
CallLog = Callable[[CallRecord], None]
