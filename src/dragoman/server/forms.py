"""How callers keep the files that they send and get, each by itself.

Rules of this module:

- What a request shows counts for that request and its answer, whoever sent it.
- Beyond that it is remembered of a verified caller and the client that it uses (its ``user-agent``); never of callers
  whom nobody verified, since one of them would decide for all.
"""

from __future__ import annotations

import logging

from ..dialects.files import Files
from ..service import Context

log = logging.getLogger(__name__)

_MOST = 1_000  # clients that are remembered
_LONGEST = 200  # bytes of a name that tells clients apart


class CallerForms:
    """Files of callers, by caller and client."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Files] = {}

    def __call__(self, ctx: Context) -> Files:
        """Those of whoever sent a request."""
        caller = ctx.caller.name
        if not caller:
            return Files()
        key = caller, ctx.headers.get(b"user-agent")[:_LONGEST]
        found = self._known.pop(key, None)
        if found is None:
            found = Files(tell=lambda text: log.info("caller %s: %s", caller, text))
        self._known[key] = found
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return found
