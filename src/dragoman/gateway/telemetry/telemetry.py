"""All that is observed of one gateway: a watch per agent, and readings of whoever else has something to tell."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec

from ...errors import UnavailableError
from ...faces import Face
from ...service import A2AService
from ..config.observing import Observe
from ..gateway import Connected
from .bodies import Bodied
from .calls import CallLog, CallRecord
from .ids import Identified
from .tallies import Counted, Reading
from .watch import Clock, Watch

if TYPE_CHECKING:
    from .exposition import Exposition
    from .tracing import Tracing

#: Tells readings, by the names of ``catalog``, each time it is asked.
Source = Callable[[], Iterable[Reading]]
_log = logging.getLogger("dragoman.calls")


class Telemetry:
    """What an operator wants to see. ``tracing``: where spans are made. ``calls``: where records of calls go,
    default the logger ``dragoman.calls``. ``sources``: others who have readings."""

    def __init__(
        self,
        observe: Observe,
        *,
        tracing: Tracing | None = None,
        calls: CallLog | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.observe = observe
        self.tracing = tracing
        self.calls: CallLog = calls or _logged
        self.sources: list[Source] = [_about]
        self._clock = clock
        self._watches: dict[str, Watch] = {}
        self._exposition: Exposition | None = None

    def watch(self, upstream: str) -> Watch | None:
        """Who watches the calls to an agent, the same each time; None if nobody has to."""
        observe = self.observe
        if not (observe.counted or observe.calls or self.tracing):
            return None
        found = self._watches.get(upstream)
        if found is None:
            log = self._enter if observe.calls else None
            found = self._watches[upstream] = Watch(upstream, log=log, tracing=self.tracing, clock=self._clock)
        return found

    def _enter(self, record: CallRecord) -> None:
        self.calls(record)

    def toward_agent(self, upstream: str, service: A2AService, client: Connected) -> A2AService:
        """The innermost service, that of ``client``, with spans for what goes on to the agent."""
        if (watch := self.watch(upstream)) is not None:
            watch.called = partial(_face, client)
        if self.tracing is None:
            return service
        from .tracing import Traced

        return Traced(service, self.tracing, client, upstream)

    def toward_callers(self, upstream: str, service: A2AService) -> A2AService:
        """The outermost service, with what has to see messages."""
        if self.observe.calls or self.tracing:
            service = Identified(service)
        return Bodied(service, upstream) if self.observe.bodies else service

    def readings(self) -> list[Reading]:
        """Everything that was counted, as it is now."""
        return list(self._read())

    def _read(self) -> Iterator[Reading]:
        for watch in self._watches.values():
            yield from watch.read()
        for source in self.sources:
            yield from source()

    def write(self, readings: Iterable[Reading], accept: str) -> tuple[str, bytes]:
        """Readings for a scraper: content type and body. Raises ``ImportError`` without the extra ``telemetry``."""
        if self._exposition is None:
            from .exposition import Exposition

            self._exposition = Exposition()
        return self._exposition.write(readings, accept)


def _face(client: Connected) -> Face | None:
    try:
        return client.face
    except UnavailableError:  # it is closed already
        return None


def _logged(record: CallRecord) -> None:
    _log.info("%s", msgspec.json.encode(record).decode())


def _about() -> Iterator[Reading]:
    yield Counted("dragoman_build_info", (version("dragoman"),), 1)


def telemetry_of(observe: Observe) -> Telemetry:
    """What a configuration asks for; spans go to the process's tracer provider. Raises ``ConfigError``."""
    tracing = None
    if observe.traces:
        from opentelemetry import trace

        from .tracing import Tracing

        tracing = Tracing(trace.get_tracer("dragoman", version("dragoman")))
    return Telemetry(observe, tracing=tracing)
