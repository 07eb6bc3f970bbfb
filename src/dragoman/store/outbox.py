"""What is kept of webhooks that a gateway serves for an agent: records, and changes to them.

Rules of this module:

- A *watch* is one callback of the gateway's own at an agent, for one task of one caller. Under it are the caller's
  *registrations*, each a webhook, and with it a *line* of deliveries, which leave in the order in which they came.
- What happens to a watch is one decision over all that is known of it, taken while nobody else can change it: see
  :data:`Decide`. So what a notification means for every line is written once, without a database.
- Of our own secrets only digests are kept. A webhook's have to be sent, so they are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..model import Task, TaskPushNotificationConfig
from ..protocol.operations import Version


class Scope(NamedTuple):
    """Whose something is: the caller ``owner`` at the tenant of an agent. All but ``agent`` may be empty."""

    agent: str
    tenant: str
    owner: str


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """One callback of ours at an agent. Times are seconds of the epoch.

    ``task_id``: as the caller knows it, empty until it is known. ``peer_id``: what the agent calls it, if that is
    something else. ``reference``, ``secret``: digests. ``snapshot``: the task as far as it was told of. ``reply``: the
    task as a send's final reply had it, which its notifications may still be on their way to. ``recent``: digests
    of the newest notifications, the last one at the end. ``ended``: nothing more comes.
    """

    id: str
    scope: Scope
    reference: str
    secret: str
    task_id: str = ""
    peer_id: str = ""
    snapshot: Task | None = None
    reply: Task | None = None
    recent: tuple[str, ...] = ()
    ended: bool = False
    created: float = 0.0


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook. ``behind``: it missed something, so the next thing that it is told is the whole task. ``ended``: it
    has served its purpose, and is here only for the sake of what it did not take."""

    id: str
    watch_id: str
    config: TaskPushNotificationConfig
    version: Version
    behind: bool = False
    ended: bool = False
    created: float = 0.0


class Line(NamedTuple):
    """A registration and what waits for it: ``waiting`` deliveries that nobody has in hand; ``part``: the newest of
    them may be replaced by what tells more."""

    registration: Registration
    waiting: int = 0
    part: bool = False


class State(NamedTuple):
    """All that is known of a watch; the lines of registrations that have ended are left out."""

    watch: Watch
    lines: tuple[Line, ...] = ()


#: Where a delivery goes: behind all others, in place of the newest (if that is a part), of all that wait.
How: TypeAlias = Literal["behind", "newest", "all"]


class Tell(NamedTuple):
    """One delivery to put on a line. ``last``: the line ends with it. ``part``: see :class:`Line`."""

    registration_id: str
    body: bytes
    how: How = "behind"
    last: bool = False
    part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of a watch. ``watch``: what it is now, None if it stays. ``gone``: it is forgotten, with all that is
    under it. ``put``: registrations to keep, in place of those of their ids; ``drop``: ids of those to forget."""

    watch: Watch | None = None
    gone: bool = False
    put: tuple[Registration, ...] = ()
    drop: tuple[str, ...] = ()
    tell: tuple[Tell, ...] = ()


#: What to do about a watch, None to leave it as it is. Pure: it may be asked again.
Decide: TypeAlias = Callable[[State], Change | None]


class Delivery(NamedTuple):
    """Something to be told. ``attempts``: how often that was tried."""

    id: int
    body: bytes
    last: bool
    attempts: int


class Claim(NamedTuple):
    """A line that is ours for a while, and the first of its deliveries. ``failures``: attempts in a row that failed."""

    registration: Registration
    task_id: str
    failures: int
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of a claim. ``delivered``: ids that were acknowledged. ``failed``: the id that was tried last and not
    taken, 0 for none; ``status``: its HTTP status, 0 if there was no answer; ``dead``: it is given up. ``failures``:
    attempts in a row that failed by now. ``due``: when the line is to be served again, default at once. ``ended``: it
    has told its last. ``gone``: the webhook says that it is no more."""

    registration_id: str
    delivered: tuple[int, ...] = ()
    failed: int = 0
    status: int = 0
    dead: bool = False
    failures: int = 0
    due: float | None = None
    ended: bool = False
    gone: bool = False


class Listed(NamedTuple):
    """A delivery for people. ``due``: when it is tried next, or the instant of its death. ``url``: of the webhook."""

    id: int
    agent: str
    task_id: str
    version: Version
    dead: bool
    attempts: int
    status: int
    due: float
    created: float
    url: str


class Stock(NamedTuple):
    """How many there are: webhooks to be served, deliveries that wait, and dead ones."""

    registrations: int = 0
    pending: int = 0
    dead: int = 0
