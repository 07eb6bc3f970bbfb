"""The accounts of callers: what each may call, and what is left of its limits.

Rules of this module:

- A caller has one account, whichever of its credentials it shows and whichever agent it calls.
- A call is refused for want of permission first, then for its rate; only a call that is permitted uses the rate up.
- Accounts of callers that are at rest are forgotten, so that memory follows the callers that are active.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from ..errors import A2AError, PermissionDeniedError, RateLimitedError, UnauthenticatedError
from ..security.allowance import Allowance, Limits
from ..security.callers import TOLD
from ..service import AnyOperation
from .config.auth import ANONYMOUS, Auth, Rule
from .held import Held

#: Accounts that are kept before those at rest are forgotten.
KEPT = 10_000


class Account(Allowance):
    """One caller's permissions and what is left of its limits."""

    __slots__ = ("operations", "upstreams")

    def __init__(self, rule: Rule, now: float) -> None:
        super().__init__(limits_of(rule), now)
        self.permit(rule)

    def permit(self, rule: Rule) -> None:
        """Have these permissions from now on."""
        self.upstreams = None if rule.upstreams is None else frozenset(rule.upstreams)
        self.operations = None if rule.operations is None else frozenset(rule.operations)

    def denial(self, op: AnyOperation, upstream: str) -> PermissionDeniedError | None:
        """The error for a call that is not permitted."""
        if self.upstreams is not None and upstream not in self.upstreams:
            return _denied(upstream, op, f"This caller may not call {upstream}")
        if self.operations is not None and op.name not in self.operations:
            return _denied(upstream, op, f"This caller may not call {op.name} of {upstream}")
        return None


def limits_of(rule: Rule) -> Limits:
    """The limits of a rule; a burst is the calls of a second unless it says otherwise."""
    rate = rule.calls_per_second
    burst = rule.burst or max(1, round(rate or 1))
    return Limits(calls_per_second=rate, burst=burst, calls=rule.concurrent_calls, streams=rule.streams)


class Accounts:
    """The accounts of all callers, by name; empty is who shows nothing. ``clock``: seconds, never going back."""

    def __init__(self, auth: Auth, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._auth = auth
        self._clock = clock
        self._open: OrderedDict[str, Account] = OrderedDict()
        self.streams: set[Held[Any]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def renew(self, auth: Auth) -> None:
        """Go by other rules from now on. What is open stays open, and counts, but for streams of who may not have
        them any more."""
        self._auth = auth
        for name, account in self._open.items():
            rule = rule_of(auth, name)
            account.limit(limits_of(rule))
            account.permit(rule)
        for stream in list(self.streams):
            if (refusal := self._refusal(stream)) is not None:
                stream.end(refusal)

    def _refusal(self, stream: Held[Any]) -> A2AError | None:
        """Why a caller may not have a stream any more, None if it may."""
        if not knows(self._auth, stream.caller):
            return UnauthenticatedError("The credentials that this stream was opened with are not valid any more")
        return self.of(stream.caller).denial(stream.op, stream.upstream)

    def of(self, name: str) -> Account:
        """The account of a caller."""
        account = self._open.get(name)
        if account is None:
            account = self._open[name] = Account(rule_of(self._auth, name), self._clock())
            if len(self._open) > KEPT:
                self._forget()
        return account

    def admit(self, name: str, op: AnyOperation, upstream: str) -> Account:
        """The account for a call, which is charged with it. Raises ``PermissionDeniedError``, ``RateLimitedError``."""
        account = self.of(name)
        if (denial := account.denial(op, upstream)) is not None:
            raise denial
        if account.limits.calls_per_second is not None and (wait := account.take(self._clock())):
            raise RateLimitedError("This caller calls too often", retry_after=wait)
        return account

    def _forget(self) -> None:
        """Let go of the oldest that are at rest: a few each time, so that no call pays for all."""
        now = self._clock()
        for _ in range(min(8, len(self._open) - 1)):
            name = next(iter(self._open))
            if self._open[name].at_rest(now):
                del self._open[name]
            else:
                self._open.move_to_end(name)


def _denied(upstream: str, op: AnyOperation, why: str) -> PermissionDeniedError:
    return PermissionDeniedError(why, metadata={"upstream": upstream, "operation": op.name})


def knows(auth: Auth, name: str) -> bool:
    """Whether somebody of this name can still be verified, as far as the configuration tells: a token of an issuer that
    is known may have been revoked."""
    source, told, _ = name.partition(TOLD)
    if not name:
        return auth.anonymous
    if told:
        return any(source == one.issuer for one in auth.jwt) or (source == "certificate" and bool(auth.certificate))
    return name in {*(one.name for one in auth.key), *(one.name for one in auth.certificate)}


def rule_of(auth: Auth, name: str) -> Rule:
    """The rule for a caller: that of its name, else the first whose pattern fits, else the default."""
    name = name or ANONYMOUS
    exact = next((rule for rule in auth.caller if rule.name == name), None)
    if exact is not None or name == ANONYMOUS:  # no pattern is meant for who shows nothing
        return exact or auth.default
    return next((rule for rule in auth.caller if fnmatchcase(name, rule.name)), None) or auth.default
