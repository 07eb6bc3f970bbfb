"""What somebody who watches an app is told: every call at its beginning and its end, and what never became a call."""

from __future__ import annotations

from typing import Literal, Protocol

from ..service import AnyOperation, Context

#: Why a request was turned away before its operation was known: the caller's credentials, or the request itself.
Why = Literal["credentials", "request"]


class Observed(Protocol):
    """One call that is watched."""

    def end(self, failure: type[BaseException] | None, events: int) -> None:
        """It is over. ``failure``: the kind of error that its caller was told, ``CancelledError`` for a caller who
        went away. ``events``: how many of a stream were written."""
        ...


class Observer(Protocol):
    """Who watches an app."""

    def begin(self, op: AnyOperation, ctx: Context) -> Observed:
        """A call begins. It ends in the same task."""
        ...

    def turned_away(self, why: Why) -> None:
        """A request was refused and never became a call."""
        ...
