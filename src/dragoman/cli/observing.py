"""What a gateway shows of itself, from the command line: the options, and who is told what while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from ..errors import ConfigError
from ..gateway.agents import Agent
from ..gateway.common import Common
from ..gateway.config import Config, Observe
from ..gateway.config.observing import wrong_observe
from ..gateway.telemetry.pages import Pages, in_thread
from ..gateway.telemetry.readiness import Readiness
from ..gateway.telemetry.sources import of_agents, of_relay
from ..gateway.telemetry.tallies import Counted, Reading
from . import logs
from .hosting import Outlook
from .output import say, stderr


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Observing:
    """What a gateway shows of itself.

    Parameters
    ----------
    log_format
        Write the log as lines of text or of JSON.
    log_level
        The least that is logged: debug, info, warning, error.
    log_calls
        Log one record per call.
    log_bodies
        Log every message, redacted. For debugging: what people write to agents stands in the log then.
    metrics
        Serve /metrics for Prometheus beside the agents.
    metrics_port
        Serve /healthz, /readyz and /metrics on this port instead, on 127.0.0.1.
    drain
        Seconds to go on serving after the first signal to stop, with /readyz saying no.
    """

    log_format: Literal["text", "json"] | None = None
    log_level: Literal["debug", "info", "warning", "error"] | None = None
    log_calls: bool = False
    log_bodies: bool = False
    metrics: bool = False
    metrics_port: int | None = None
    drain: float | None = None

    def over(self, config: Config) -> Config:
        """The configuration, less what the command line says otherwise. Raises ``ConfigError``."""
        said: dict[str, Any] = {"log": self.log_format, "level": self.log_level, "port": self.metrics_port}
        said |= {"calls": self.log_calls, "bodies": self.log_bodies, "metrics": self.metrics}
        given = {key: value for key, value in said.items() if value not in (None, False)}
        server = config.server if self.drain is None else replace(config.server, drain=self.drain)
        observe = replace(config.observe, **given)
        for path, text in wrong_observe(observe, server, config.upstream):
            raise ConfigError(f"observe.{path[-1]}: {text}")
        return replace(config, observe=observe, server=server)


@contextmanager
def logging_as(observe: Observe) -> Iterator[Callable[[str], None]]:
    """Log and trace as the operator wants while the block runs; gives who tells the operator what was decided.

    Raises ``ConfigError``.
    """
    logs.set_up(observe)
    quiet, stderr.quiet = stderr.quiet, observe.log == "json"  # lines of JSON, and nothing between them
    end = _nothing
    if observe.traces:
        from ..gateway.telemetry.exporting import set_up

        end = set_up()
    try:
        yield logs.teller(observe)
    finally:
        stderr.quiet = quiet
        end()


def outlook(config: Config, common: Common, agents: Callable[[], Sequence[Agent]]) -> Outlook:
    """The gateway's own pages and its manner of ending."""
    observe, telemetry = config.observe, common.telemetry
    if observe.calls:
        telemetry.calls = logs.call_log(observe)
    readiness = Readiness(observe.ready, agents, common.checks)
    if observe.counted:
        telemetry.write((), "")  # loads what is needed for it now, not while callers wait

    def readings() -> Iterator[Reading]:
        yield Counted("dragoman_draining", (), readiness.draining)
        if common.relay is not None:
            yield from of_relay(common.relay)

    telemetry.sources.append(readings)
    telemetry.sources.append(lambda: of_agents(agents))
    metrics = in_thread(telemetry.readings, telemetry.write) if observe.counted else None
    private = observe.port is not None
    return Outlook(
        pages=Pages(readiness, metrics, private=private),
        place=(observe.host, observe.port) if observe.port is not None else None,
        drain=config.server.drain,
        draining=readiness.drain,
        tell=logs.teller(observe) if observe.log == "json" else say,
    )


def _nothing() -> None:
    """There is nothing to end."""
