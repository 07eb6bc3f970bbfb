"""Ids and timestamps, cheap enough for every event.

Rules of this module:

- An id is 128 random bits from the operating system, as 32 hex digits; bits are drawn in blocks.
- A forked process starts with an empty block, so that two workers never hand out the same id.
- A timestamp is canonical (1.0 §5.6.1): UTC, three fraction digits, ``Z``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeAlias

#: Gives the present as a canonical timestamp.
Clock: TypeAlias = Callable[[], str]

_BLOCK = 256
_ids: list[str] = []
_last: tuple[int, str] = (-1, "")
_prefix: tuple[int, str] = (-1, "")


def new_id() -> str:
    """A new unguessable id of 32 hex digits."""
    if not _ids:
        digits = os.urandom(16 * _BLOCK).hex()
        _ids.extend(digits[at : at + 32] for at in range(0, 32 * _BLOCK, 32))
    return _ids.pop()


def utc_now() -> str:
    """The present as ``YYYY-MM-DDTHH:MM:SS.mmmZ``."""
    global _last
    millis = time.time_ns() // 1_000_000
    at, text = _last
    if at != millis:
        text = _format(millis)
        _last = (millis, text)
    return text


def _format(millis: int) -> str:
    global _prefix
    second, rest = divmod(millis, 1000)
    at, prefix = _prefix
    if at != second:
        prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        _prefix = (second, prefix)
    return f"{prefix}{rest:03d}Z"


os.register_at_fork(after_in_child=_ids.clear)
