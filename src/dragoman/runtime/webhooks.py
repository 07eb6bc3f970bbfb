"""What everybody who delivers to webhooks does alike: judge a new one, and make one attempt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from ..errors import InvalidParamsError, TransportError
from ..model import TaskPushNotificationConfig
from ..security.guard import Guard, TargetRefused
from .notice import unsendable

log = logging.getLogger("dragoman.push")

T = TypeVar("T")


class Answer(NamedTuple):
    """What a webhook answers: the HTTP status, and its Retry-After as it stands there."""

    status: int
    retry_after: str = ""


class Post(Protocol):
    """How a notification leaves this process."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The HTTP status of the reply. Raises ``TargetRefused``, ``TransportError``, ``OSError``."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class AskingPost(Protocol):
    """As :class:`Post`, for who wants to know when to come back."""

    async def ask(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As :meth:`Post.post`."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


async def admit(config: TaskPushNotificationConfig, guard: Guard | None, seconds: float) -> None:
    """Judge a new webhook. Raises ``InvalidParamsError`` for a URL that may not be called or a secret that cannot be
    sent. A host that cannot be found within so many seconds passes: every delivery looks again.
    """
    violations = unsendable(config)
    try:
        if guard is not None and not violations:
            async with asyncio.timeout(seconds):
                await guard.check(config.url)
    except TargetRefused as refusal:
        violations.append(("url", str(refusal)))
    except (OSError, TimeoutError):
        log.info("The host of a new webhook cannot be found at the moment")
    if violations:
        raise InvalidParamsError(violations=tuple(violations))
    given = config.authentication
    if given is not None and given.scheme and not given.credentials:
        log.warning("A webhook names the scheme %s without credentials: no Authorization is sent", given.scheme)


async def attempted(attempt: Awaitable[T], seconds: float, name: str) -> T | None:
    """The answer to an attempt, None if there was none in time. ``name``: of the webhook in the log, where neither its
    URL nor its token belong."""
    try:
        async with asyncio.timeout(seconds):
            return await attempt
    except (TransportError, TargetRefused, OSError, TimeoutError) as error:
        log.info("Webhook %s cannot be reached: %s", name, error or "no answer in time")
    return None
