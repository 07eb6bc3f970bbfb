"""For how long a card that was fetched is good, told from the header fields that came with it.

Rules of this module (pure; RFC 9111 §4.2, §5.3):

- ``s-maxage``, ``max-age``, then ``Expires``; ``no-store`` and ``no-cache`` mean no time at all. The Age that it had is
  taken off.
- An operator's own interval stands above all of them; where neither says anything, there is a default.
- Nothing makes us ask more often than every few seconds, nor less often than once a day.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from ..protocol.messages import Headers

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. ``floor``: the least between two looks at a card, ``default``: where its fields do not say."""

    floor: float = 10.0
    default: float = 300.0

    def wait(self, fields: Headers, said: float | None = None) -> float:
        """How long until the next look, spread a little so that many gateways do not ask at one time.

        ``said``: the operator's own interval.
        """
        time = said if said is not None else lifetime(fields)
        chosen = self.default if time is None else time
        return min(max(chosen, self.floor), _DAY) * random.uniform(0.95, 1.0)


def lifetime(fields: Headers) -> float | None:
    """Seconds for which a reply with these fields is fresh; None if they do not say."""
    directives = _directives(fields.text("cache-control"))
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    for name in ("s-maxage", "max-age"):
        if directives.get(name, "").isdigit():
            return max(float(directives[name]) - _age(fields), 0.0)
    return _until_expiry(fields)


def _directives(text: str) -> dict[str, str]:
    parts = (part.strip().partition("=") for part in text.lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in parts}


def _age(fields: Headers) -> float:
    text = fields.text("age").strip()
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _until_expiry(fields: Headers) -> float | None:
    expires, date = fields.text("expires"), fields.text("date")
    if not expires or not date:
        return None
    try:
        return max((parsedate_to_datetime(expires) - parsedate_to_datetime(date)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return 0.0  # an Expires that is no date means the past
