"""What a verified caller may do: which agents and operations, how often, how much at a time.

Rules of this module:

- Limits count over all agents, faces and connections: a caller has one account, whichever of its credentials it shows.
- A call is refused before the agent hears of it: first for want of permission, then for its rate, then because too
  much is open. What was refused uses nothing up but the rate.
- What was opened is given back exactly once, however it ends: a call when it is answered, a stream when it is closed,
  and neither before what goes on in the background for it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ..dialects.base import Dialect
from ..errors import RateLimitedError
from ..model import (
    GET_EXTENDED_AGENT_CARD,
    AgentCard,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    MutualTlsSecurityScheme,
    Req,
    Res,
    SecurityRequirement,
    SecurityScheme,
    Streaming,
    StringList,
    Unary,
)
from ..protocol.messages import Headers
from ..security.callers import Verifier
from ..service import A2AService, AnyOperation, ByteStream, Caller, Context, EventStream, Item, Stream
from .accounts import Account, Accounts
from .config.auth import Auth
from .held import Held
from .layer import Layer

if TYPE_CHECKING:
    from ..security.jwks import KeySet

_BUSY = 1.0  # seconds after which who has too much open may try again


class Admission:
    """Who may come in, as an operator wrote it. It is what an app asks who is calling (``Callers``), and gives each
    agent's service the layer that enforces the rules. ``accounts``: those of before, after a reload. ``key_sets``: of
    the issuers, by name, for who comes after it."""

    def __init__(
        self,
        auth: Auth,
        verifier: Verifier,
        *,
        accounts: Accounts | None = None,
        key_sets: Mapping[str, KeySet] = MappingProxyType({}),
    ) -> None:
        self.auth = auth
        self.key_sets = key_sets
        self.accounts = Accounts(auth) if accounts is None else accounts  # one without any callers is falsy
        self._verifier = verifier
        if accounts is not None:
            accounts.renew(auth)

    def start(self) -> None:
        """Begin to fetch the keys of issuers; it does not wait for them."""
        self._verifier.start()

    async def aclose(self) -> None:
        """End what is under way."""
        await self._verifier.aclose()

    def known(self, headers: Headers, scope: Mapping[str, Any]) -> Caller | None:
        """As ``Callers.known``."""
        return self._verifier.known(headers, scope)

    async def verify(self, headers: Headers, scope: Mapping[str, Any]) -> Caller:
        """As ``Callers.verify``."""
        return await self._verifier.verify(headers, scope)

    def admitted(self, upstream: str, service: A2AService) -> Admitted:
        """The service of an agent, for those who may call it."""
        return Admitted(service, upstream, self.accounts, self.announced)

    def security_schemes(self) -> tuple[dict[str, SecurityScheme], tuple[SecurityRequirement, ...]]:
        """What a card has to say of it (1.0 §4.5): the schemes, and of which one is required."""
        schemes = _schemes(self.auth)
        required = (
            () if self.auth.anonymous else tuple(SecurityRequirement(schemes={name: StringList()}) for name in schemes)
        )
        return schemes, required

    def announced(self, card: AgentCard) -> AgentCard:
        """An agent's card with the schemes of the gateway instead of its own."""
        schemes, required = self.security_schemes()
        skills = tuple(replace(skill, security_requirements=()) for skill in card.skills)
        return replace(card, security_schemes=schemes, security_requirements=required, skills=skills)


def _schemes(auth: Auth) -> dict[str, SecurityScheme]:
    found: dict[str, SecurityScheme] = {}
    if auth.key or auth.jwt:
        kind = "" if auth.key else "JWT"
        found["bearer"] = SecurityScheme(
            http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format=kind)
        )
    if auth.key:
        key = APIKeySecurityScheme(location="header", name=auth.api_key_header)
        found["apiKey"] = SecurityScheme(api_key_security_scheme=key)
    if auth.certificate:
        found["mutualTLS"] = SecurityScheme(mtls_security_scheme=MutualTlsSecurityScheme())
    return found


class Admitted(Layer):
    """The service of the agent ``upstream``, for those whose accounts permit it. ``announce``: what is made of the
    extended card."""

    def __init__(
        self, inner: A2AService, upstream: str, accounts: Accounts, announce: Callable[[AgentCard], AgentCard]
    ) -> None:
        super().__init__(inner)
        self._announce = announce
        self._upstream = upstream
        self._accounts = accounts

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        ctx.lease = lease = OpenCall(self._begun(op, ctx))
        try:
            reply = await self.inner.call(op, request, ctx)
        finally:
            lease.release()
        return cast("Res", self._announce(reply)) if isinstance(reply, AgentCard) else reply

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for the card."""
        return op is not GET_EXTENDED_AGENT_CARD and super().passes(dialect, op)

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``."""
        account = self._begun(op, ctx)
        try:
            return await self._through.exchange(op, body, ctx)
        finally:
            account.calls -= 1

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        ctx.lease = lease = OpenStream(self._opened(op, ctx))
        try:
            return self._held(await self.inner.stream(op, request, ctx), lease, op, ctx)
        except BaseException:
            lease.release()
            raise

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``."""
        lease = OpenStream(self._opened(op, ctx))
        try:
            return self._held(await self._through.exchange_stream(op, body, ctx), lease, op, ctx)
        except BaseException:
            lease.release()
            raise

    def _held(self, stream: Stream[Item], lease: OpenStream, op: AnyOperation, ctx: Context) -> Held[Item]:
        return Held(stream, lease.release, ctx.caller.name, op, self._upstream, self._accounts.streams)

    def _begun(self, op: AnyOperation, ctx: Context) -> Account:
        account = self._accounts.admit(ctx.caller.name, op, self._upstream)
        most = account.limits.calls
        if most is not None and account.calls >= most:
            raise RateLimitedError(f"This caller has {most} calls open already", retry_after=_BUSY)
        account.calls += 1
        return account

    def _opened(self, op: AnyOperation, ctx: Context) -> Account:
        account = self._accounts.admit(ctx.caller.name, op, self._upstream)
        most = account.limits.streams
        if most is not None and account.streams >= most:
            raise RateLimitedError(f"This caller has {most} streams open already", retry_after=_BUSY)
        account.streams += 1
        return account


class OpenCall:
    """A call on somebody's account, until whoever has a share in it has let go: its caller, and the background."""

    __slots__ = ("_account", "_shares")

    def __init__(self, account: Account) -> None:
        self._account = account
        self._shares = 1

    def share(self) -> Callable[[], None]:
        """As ``Lease.share``."""
        if not self._shares:
            self._count(1)
        self._shares += 1
        return self.release

    def release(self) -> None:
        """Let go of one share."""
        self._shares -= 1
        if not self._shares:
            self._count(-1)

    def _count(self, more: int) -> None:
        self._account.calls += more


class OpenStream(OpenCall):
    """The same for a stream."""

    __slots__ = ()

    def _count(self, more: int) -> None:
        self._account.streams += more
