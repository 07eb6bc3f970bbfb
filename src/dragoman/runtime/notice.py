"""What a webhook is told, and when it is told again: pure, for whoever delivers.

Rules of this module:

- The version in which a webhook was registered decides what it gets, whoever caused the event. 1.0: one
  StreamResponse as ``application/a2a+json`` (1.0 §4.3.3). 0.3: the whole task with ``kind`` as ``application/json``,
  or the bare event, which some receivers of 0.3 expect.
- Credentials go out as they were given: ``Authorization: {scheme} {credentials}`` if both are there. The token goes
  in both headers that receivers in the field read.
- What cannot be a header value is refused when the webhook is registered.
- 2xx acknowledges. 410 means that the webhook is gone for good. Anything else is tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from ..dialects import v03, v1
from ..errors import ConfigError
from ..model import GET_TASK, SUBSCRIBE_TO_TASK, StreamResponse, TaskPushNotificationConfig
from ..protocol.operations import Version
from .lifecycle import is_terminal

TOKEN_HEADERS = ("X-A2A-Notification-Token", "A2A-Notification-Token")
GONE = 410

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST = 8_192  # characters of each text of a webhook, which fits into what servers take as a header


@dataclass(frozen=True, slots=True)
class Form:
    """What webhooks of one version get. ``whole``: the task as it is rather than what happened to it."""

    media: str
    whole: bool
    dump: Callable[[StreamResponse], bytes]


Forms: TypeAlias = Mapping[Version, Form]


def _event_1(event: StreamResponse) -> bytes:
    return v1.JSON.dump_reply(SUBSCRIBE_TO_TASK, event)


def _event_03(event: StreamResponse) -> bytes:
    return v03.JSON.dump_reply(SUBSCRIBE_TO_TASK, event)


def _task_03(event: StreamResponse) -> bytes:
    return _event_03(event) if event.task is None else v03.JSON.dump_reply(GET_TASK, event.task)


FORMS: Forms = {
    "1.0": Form("application/a2a+json", False, _event_1),
    "0.3": Form("application/json", True, _task_03),
}
#: As :data:`FORMS`, with the bare event for 0.3.
BARE_FORMS: Forms = {**FORMS, "0.3": Form("application/json", False, _event_03)}


def headers(config: TaskPushNotificationConfig, media: str) -> dict[str, str]:
    """The header fields of a notification."""
    fields = {"Content-Type": media}
    if config.token:
        fields.update(dict.fromkeys(TOKEN_HEADERS, config.token))
    given = config.authentication
    if given is not None and given.scheme and given.credentials:
        fields["Authorization"] = f"{given.scheme} {given.credentials}"
    return fields


def unsendable(config: TaskPushNotificationConfig) -> list[tuple[str, str]]:
    """What of a config cannot be sent: (field, text) of each. Secrets become header values, and all of it is kept."""
    given = config.authentication
    secrets = [("token", config.token)]
    if given is not None:
        secrets += [("authentication.scheme", given.scheme), ("authentication.credentials", given.credentials)]
    wrong = [(field, "must not contain control characters") for field, value in secrets if _CONTROL.search(value)]
    texts = [("id", config.id), ("url", config.url), *secrets]
    too_long = f"must not be longer than {_LONGEST} characters"
    return wrong + [(field, too_long) for field, value in texts if len(value) > _LONGEST]


def is_last(event: StreamResponse) -> bool:
    """Whether nothing can follow this event: its task is final."""
    if event.status_update is not None:
        return is_terminal(event.status_update.status.state)
    return event.task is not None and is_terminal(event.task.status.state)


def acknowledged(status: int) -> bool:
    """Whether this HTTP status says that the webhook took the notification."""
    return 200 <= status < 300


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how soon a notification is tried again; times in seconds.

    ``tries``: attempts per notification. ``first``: the wait after one failure, doubled with each further one in a
    row up to ``most``. ``jitter``: the share of a wait that is random, 0 to 1.
    """

    tries: int = 8
    first: float = 1.0
    most: float = 60.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if self.tries < 1 or not 0 <= self.jitter <= 1 or not 0 <= self.first <= self.most:
            raise ConfigError("Retries need at least 1 try, a jitter from 0 to 1, and 0 <= first <= most")

    def delay(self, failures: int, random: float) -> float:
        """How long to wait after so many failures in a row; ``random`` is from 0 to 1."""
        whole = min(self.most, self.first * 2.0 ** min(failures - 1, 64))
        return whole * (1 - self.jitter * random)

    def later(self, failures: int, random: float, wanted: float) -> float:
        """As :meth:`delay`, but not before the webhook wants it: ``wanted`` seconds, which count up to ``most``."""
        return max(self.delay(failures, random), min(wanted, self.most))


def wanted_pause(retry_after: str, now: float) -> float:
    """Seconds that a Retry-After asks for, whether it gives them or a date (RFC 9110 §10.2.3); 0 if it is neither.
    ``now``: seconds of the epoch."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0
