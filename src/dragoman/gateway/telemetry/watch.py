"""One agent under observation: each of its calls from begin to end, and what is counted of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import Token
from typing import TYPE_CHECKING, Any

from ...faces import Face
from ...ledger import Listener, Side, listener
from ...server.observing import Why
from ...service import AnyOperation, Context
from .calls import CallLog, CallRecord
from .tallies import Counted, Reading, Tally

if TYPE_CHECKING:
    from .tracing import Tracing

Clock = Callable[[], float]
#: Which face of the agent is called now, None while it cannot be reached.
Called = Callable[[], Face | None]
_Key = tuple[str, str | None, str, Face | None]


def nobody() -> None:
    """No face is called yet."""


class Watch:
    """An ``Observer`` of one agent's app. ``called``: told once the agent is reached."""

    def __init__(self, upstream: str, *, log: CallLog | None, tracing: Tracing | None, clock: Clock) -> None:
        self.upstream = upstream
        self.log = log
        self.tracing = tracing
        self.clock = clock
        self.called: Called = nobody
        self.calls = 0
        self.streams = 0
        self.losses: Counter[tuple[str, Side]] = Counter()
        self._away: Counter[Why] = Counter()
        self._tallies: dict[_Key, Tally] = {}

    def begin(self, op: AnyOperation, ctx: Context) -> Watched:
        """As ``Observer.begin``."""
        if op.streaming:
            self.streams += 1
        else:
            self.calls += 1
        return Watched(self, op, ctx)

    def turned_away(self, why: Why) -> None:
        """As ``Observer.turned_away``."""
        self._away[why] += 1

    def tally(self, op: AnyOperation, ctx: Context) -> Tally:
        """Where a call is counted."""
        key = (op.name, ctx.binding, ctx.version, self.called())
        return self._tallies.get(key) or self._new(key, op)

    def _new(self, key: _Key, op: AnyOperation) -> Tally:
        name, binding, version, out = key
        labels = (self.upstream, name, f"{version}/{binding}", str(out) if out else "none")
        tally = self._tallies[key] = Tally(labels, streaming=op.streaming)
        return tally

    def read(self) -> Iterator[Reading]:
        """What was counted so far."""
        mine = (self.upstream,)
        yield Counted("dragoman_calls_in_flight", mine, self.calls)
        yield Counted("dragoman_streams_open", mine, self.streams)
        for why, number in self._away.items():
            yield Counted("dragoman_turned_away_total", (self.upstream, why), number)
        for (name, side), number in self.losses.items():
            yield Counted("dragoman_losses_total", (self.upstream, name, side), number)
        for tally in self._tallies.values():
            yield from tally.read()


class Watched:
    """One call. It hears of its losses, and of the ids of its task and context where somebody sees them."""

    __slots__ = ("_began", "_token", "_watch", "context", "ctx", "losses", "op", "span", "task", "trace")

    def __init__(self, watch: Watch, op: AnyOperation, ctx: Context) -> None:
        self._watch = watch
        self.op = op
        self.ctx = ctx
        self.task = self.context = self.trace = ""
        self.losses: dict[str, None] = {}  # in the order in which they were met
        self._token: Token[Listener | None] = listener.set(self)
        self.span: Any = None if watch.tracing is None else watch.tracing.begin(self, watch.upstream)
        self._began = watch.clock()

    def lost(self, side: Side, names: Sequence[str]) -> None:
        """As ``Listener.lost``. What goes on without its caller is still counted."""
        counts = self._watch.losses
        for name in names:
            counts[name, side] += 1
            self.losses[name] = None

    def end(self, failure: type[BaseException] | None, events: int) -> None:
        """As ``Observed.end``."""
        watch, op = self._watch, self.op
        took = watch.clock() - self._began
        listener.reset(self._token)
        outcome = "ok" if failure is None else _OUTCOMES.get(failure.__name__, failure.__name__)
        tally = watch.tally(op, self.ctx)
        tally.add(outcome, took, events)
        if op.streaming:
            watch.streams -= 1
        else:
            watch.calls -= 1
        if watch.tracing is not None:
            watch.tracing.end(self, failure, outcome, tally.labels, events)
        if watch.log is not None:
            watch.log(self._record(outcome, took, events, tally.labels))

    def _record(self, outcome: str, took: float, events: int, labels: tuple[str, ...]) -> CallRecord:
        upstream, operation, face_in, face_out = labels
        return CallRecord(
            time=time.time(),
            upstream=upstream,
            operation=operation,
            face_in=face_in,
            face_out=face_out,
            outcome=outcome,
            ms=round(took * 1e3, 2),
            task=self.task,
            context=self.context,
            caller=self.ctx.caller.name,
            losses=tuple(self.losses),
            events=events if self.op.streaming else None,
            trace=self.trace,
        )


_OUTCOMES = dict.fromkeys(("CancelledError", "ClientDisconnectedError"), "cancelled")


def watched() -> Watched | None:
    """The call that is at work, if it is watched."""
    found = listener.get()
    return found if isinstance(found, Watched) else None
