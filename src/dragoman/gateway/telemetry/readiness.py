"""Whether the gateway can serve: somebody behind it answers, what it keeps is at hand, and nobody told it to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ..config import Upstream
from ..config.observing import Ready

#: Asks for something that is needed; raises if it is not there.
Check = Callable[[], Awaitable[object]]
#: Seconds that a check may take.
PATIENCE = 2.0


class Reached(Protocol):
    """What has to be known of an agent behind the gateway: ``client`` is None until it was reached."""

    @property
    def config(self) -> Upstream: ...

    @property
    def reachable(self) -> bool: ...

    @property
    def client(self) -> Any: ...

    @property
    def error(self) -> Exception | None: ...


class OneState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent. ``url``, ``face`` and ``error`` are for the operator's eyes."""

    up: bool
    url: str = ""
    face: str = ""
    error: str = ""


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ``/readyz`` answers. ``missing``: needed things that do not answer."""

    ready: bool
    draining: bool = False
    missing: tuple[str, ...] = ()
    upstreams: dict[str, OneState] = {}


class Readiness:
    """``rule``: how many of ``agents`` have to be there. ``checks``: further things that are needed, by name."""

    def __init__(
        self, rule: Ready, agents: Callable[[], Sequence[Reached]], checks: Mapping[str, Check] | None = None
    ) -> None:
        self.draining = False
        self._rule = rule
        self._agents = agents
        self._checks = checks or {}

    def drain(self) -> None:
        """Say no from now on."""
        self.draining = True

    async def state(self, *, private: bool) -> State:
        """What it is now. ``private``: for the operator, with addresses and reasons."""
        agents = self._agents()
        missing = await self._missing()
        return State(
            ready=not self.draining and not missing and self._enough(agents),
            draining=self.draining,
            missing=missing,
            upstreams={one.config.name: _of(one, private) for one in agents},
        )

    def _enough(self, agents: Sequence[Reached]) -> bool:
        there = [one.reachable for one in agents]
        return {"all": all(there), "any": any(there), "none": True}[self._rule]

    async def _missing(self) -> tuple[str, ...]:
        found = await asyncio.gather(*map(_answers, self._checks.values()))
        return tuple(name for name, there in zip(self._checks, found, strict=True) if not there)


async def _answers(check: Check) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            await check()
    except Exception:  # whatever it is, it is not there
        return False
    return True


def _of(agent: Reached, private: bool) -> OneState:
    client = agent.client
    if not private:
        return OneState(agent.reachable)
    return OneState(
        agent.reachable,
        url=client.interface.url if client is not None else agent.config.url,
        face=str(client.face) if client is not None else "",
        error="" if agent.error is None else str(agent.error),
    )
