"""What an operator writes about what the gateway keeps, and about the webhooks that it serves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from .values import Count, Seconds, Secret

Days = Annotated[float, Meta(gt=0, le=36_500)]


class Store(Struct, frozen=True, kw_only=True):
    """Where registrations, undelivered notifications and seen tasks are kept.

    ``url``: ``sqlite:PATH``, ``postgresql://...`` or ``memory``; default a SQLite file in the state directory.
    ``password``: for PostgreSQL, if the url has none. ``task_days``: how long the task index remembers a task after
    its last change; ``tasks``: how many per agent.
    """

    url: str = ""
    password: Secret | None = None
    task_days: Days = 30.0
    tasks: Count = 100_000


class Relay(Struct, frozen=True, kw_only=True):
    """How webhooks of callers are served.

    ``callback_url``: where the agents reach the gateway, default ``server.public_url``, else where it listens.
    ``allow``: hosts and networks that callers may register besides public ones; ``allow_private``: any. ``tries``:
    attempts per notification before it is dead; ``first`` and ``most``: seconds between them, doubled each time.
    ``timeout``: seconds of one attempt. ``in_flight``: attempts at once. ``dead_days``: how long dead ones are kept.
    ``bare_events``: webhooks of 0.3 get the event instead of the task.
    """

    callback_url: str = ""
    allow: tuple[str, ...] = ()
    allow_private: bool = False
    tries: Count = 12
    first: Seconds = 1.0
    most: Seconds = 900.0
    timeout: Seconds = 15.0
    in_flight: Count = 256
    dead_days: Days = 14.0
    bare_events: bool = False
