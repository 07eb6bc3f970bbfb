"""What a verified caller may do: permissions, rates, what is open at a time, and what the card says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.dialects.base import Dialect
from dragoman.errors import InternalError, PermissionDeniedError, RateLimitedError
from dragoman.faces import FACES, Face
from dragoman.gateway import accounts
from dragoman.gateway.accounts import Accounts, rule_of
from dragoman.gateway.admission import Admission, Admitted
from dragoman.gateway.config import Auth, Secret
from dragoman.gateway.config.auth import CallerRule, Certificate, Jwt, Key, Rule
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    AgentSkill,
    APIKeySecurityScheme,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    MutualTlsSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StreamResponse,
    StringList,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.security.callers import Verified, Verifier
from dragoman.service import ANONYMOUS, AnyOperation, Caller, Context, EventStream, Stream
from tests.runtime.bench import card, message
from tests.security.issuer import Clock
from tests.server.callers import sending

DIALECT = FACES[Face("JSONRPC", "1.0")].dialect
CI, OPS = Verified(name="ci"), Verified(name="ops")


class Endless(Stream[Any]):
    """A stream of nothing."""

    def __init__(self) -> None:
        self.closed = 0

    async def batch(self) -> Sequence[Any]:
        return ()

    async def aclose(self) -> None:
        self.closed += 1


class Inner:
    """A service that counts, and answers when ``go`` is set; or fails."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()
        self.go.set()
        self.begun = asyncio.Event()
        self.fails = False
        self.streams: list[Endless] = []

    async def call(self, op: AnyOperation, request: Any, ctx: Context) -> Any:
        await self._answer()
        if op is GET_EXTENDED_AGENT_CARD:
            return card()
        return Task(id="t", status=TaskStatus(state=TaskState.WORKING))

    async def stream(self, op: AnyOperation, request: Any, ctx: Context) -> EventStream:
        await self._answer()
        self.streams.append(Endless())
        return self.streams[-1]

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        return True

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        await self._answer()
        return body

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Any:
        return await self.stream(op, None, ctx)

    async def _answer(self) -> None:
        self.calls += 1
        self.begun.set()
        await self.go.wait()
        if self.fails:
            raise InternalError


class Admitting:
    """Two agents behind one admission."""

    def __init__(self, *rules: CallerRule, default: Rule = Rule(), **auth: Any) -> None:  # noqa: B008 - immutable
        self.clock = Clock(0)
        self.auth = Auth(caller=rules, default=default, **auth)
        self.accounts = Accounts(self.auth, clock=self.clock)
        self.admission = Admission(self.auth, Verifier(), accounts=self.accounts)
        self.inner = {"billing": Inner(), "search": Inner()}

    def service(self, name: str = "billing") -> Admitted:
        return self.admission.admitted(name, self.inner[name])

    async def get(self, caller: Caller = CI, name: str = "billing") -> Any:
        return await self.service(name).call(GET_TASK, GetTaskRequest(id="t"), Context(caller=caller))

    async def open(self, caller: Caller = CI, name: str = "billing") -> EventStream:
        return await self.service(name).stream(SEND_STREAMING_MESSAGE, sending("x"), Context(caller=caller))

    def left_open(self, name: str = "ci") -> tuple[int, int]:
        account = self.accounts.of(name)
        return account.calls, account.streams


# -- permissions


async def test_without_a_rule_all_is_allowed() -> None:
    one = Admitting()
    for caller in (CI, ANONYMOUS):
        assert (await one.get(caller)).id == "t"
        await (await one.open(caller, "search")).aclose()


async def test_an_agent_that_is_not_on_the_list_is_denied_before_it_hears_of_it() -> None:
    one = Admitting(CallerRule(name="ci", upstreams=("billing",)))
    await one.get(CI, "billing")
    for denied in (one.get(CI, "search"), one.open(CI, "search")):
        with pytest.raises(PermissionDeniedError, match="may not call search") as raised:
            await denied
    assert raised.value.metadata == {"upstream": "search", "operation": "SendStreamingMessage"}
    assert one.inner["search"].calls == 0
    await one.get(OPS, "search")


async def test_an_operation_that_is_not_on_the_list_is_denied() -> None:
    one = Admitting(CallerRule(name="ci", operations=("GetTask",)))
    await one.get()
    for name in ("call", "exchange"):
        request: Any = b"{}" if name == "exchange" else sending("x")
        with pytest.raises(PermissionDeniedError, match="may not call SendMessage of billing"):
            await getattr(one.service(), name)(SEND_MESSAGE, request, Context(caller=CI))
    with pytest.raises(PermissionDeniedError, match="may not call SendStreamingMessage of billing"):
        await one.open()


async def test_an_empty_list_allows_nothing() -> None:
    one = Admitting(default=Rule(upstreams=()))
    with pytest.raises(PermissionDeniedError):
        await one.get()


RULES = (
    CallerRule(name="https://id.example#*", streams=1),
    CallerRule(name="ci", streams=2),
    CallerRule(name="c*", streams=3),
    CallerRule(name="https://id.example#alice", streams=4),
    CallerRule(name="anonymous", streams=5),
)


def test_no_pattern_is_meant_for_who_shows_nothing() -> None:
    auth = Auth(anonymous=True, caller=(CallerRule(name="*", streams=1), CallerRule(name="a*", streams=2)))
    assert rule_of(auth, "") is auth.default


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("ci", 2),
        ("cd", 3),
        ("https://id.example#bob", 1),
        ("https://id.example#alice", 4),
        ("https://other.example#alice", 9),
        ("", 5),
        ("ops", 9),
    ],
)
def test_a_caller_has_the_rule_of_its_name_else_the_first_that_fits_else_the_default(name: str, streams: int) -> None:
    assert rule_of(Auth(caller=RULES, default=Rule(streams=9)), name).streams == streams


# -- rates


async def test_who_calls_too_often_is_told_when_to_come_back() -> None:
    one = Admitting(CallerRule(name="ci", calls_per_second=2.0, burst=3))
    for _ in range(3):
        await one.get()
    with pytest.raises(RateLimitedError) as raised:
        await one.get(CI, "search")  # over all agents
    assert raised.value.retry_after == 0.5
    assert one.inner["search"].calls == 0
    await one.get(OPS)
    one.clock.now += 0.5
    await (await one.open()).aclose()  # streams count as calls
    with pytest.raises(RateLimitedError):
        await one.get()


async def test_the_burst_is_that_of_a_second_unless_it_is_said() -> None:
    one = Admitting(CallerRule(name="ci", calls_per_second=4.0), CallerRule(name="ops", calls_per_second=0.1))
    for _ in range(4):
        await one.get(CI)
    await one.get(OPS)
    for caller in (CI, OPS):
        with pytest.raises(RateLimitedError):
            await one.get(caller)


# -- what is open at a time


async def test_calls_at_once_are_limited_over_all_agents_and_given_back() -> None:
    one = Admitting(CallerRule(name="ci", concurrent_calls=2))
    for inner in one.inner.values():
        inner.go.clear()
    running = [asyncio.create_task(one.get(CI, name)) for name in one.inner]
    await asyncio.gather(*(inner.begun.wait() for inner in one.inner.values()))
    with pytest.raises(RateLimitedError, match="2 calls open") as raised:
        await one.service().exchange(GET_TASK, b"{}", Context(caller=CI))
    assert raised.value.retry_after
    others = asyncio.create_task(one.get(OPS))
    for inner in one.inner.values():
        inner.go.set()
    await asyncio.gather(*running, others)
    assert one.left_open() == (0, 0)
    await one.get()


@pytest.mark.parametrize("way", ["answered", "failed", "cancelled"])
@pytest.mark.parametrize("method", ["call", "exchange", "stream", "exchange_stream"])
async def test_what_was_taken_is_given_back_however_it_ends(method: str, way: str) -> None:
    one = Admitting(CallerRule(name="ci", concurrent_calls=1, streams=1))
    inner = one.inner["billing"]
    inner.fails = way == "failed"
    inner.go.clear()
    op: Any = SEND_STREAMING_MESSAGE if "stream" in method else GET_TASK
    request: Any = b"{}" if "exchange" in method else sending("x")
    running = asyncio.create_task(getattr(one.service(), method)(op, request, Context(caller=CI)))
    await inner.begun.wait()
    assert one.left_open() == ((0, 1) if "stream" in method else (1, 0))
    if way == "cancelled":
        running.cancel()
    inner.go.set()
    ended: Any = (await asyncio.gather(running, return_exceptions=True))[0]
    if way == "answered" and "stream" in method:
        assert one.left_open() == (0, 1)
        await ended.aclose()
        await ended.aclose()
        assert inner.streams[0].closed == 2
    assert one.left_open() == (0, 0)


async def test_open_streams_are_limited_until_they_are_closed() -> None:
    one = Admitting(CallerRule(name="ci", streams=2))
    first, second = await one.open(), await one.open(CI, "search")
    assert await first.batch() == ()  # its end is not its close
    with pytest.raises(RateLimitedError, match="2 streams open"):
        await one.open()
    await one.open(OPS)
    await one.get()  # calls are not streams
    await second.aclose()
    await one.open()
    assert one.left_open() == (0, 2)


async def test_a_stream_gives_what_is_in_it() -> None:
    one = Admitting()

    class Full(Endless):
        async def batch(self) -> Sequence[Any]:
            return () if self.closed else [StreamResponse(message=message())]

    class Giving(Inner):
        async def stream(self, op: AnyOperation, request: Any, ctx: Context) -> EventStream:
            return Full()

    stream = await one.admission.admitted("billing", Giving()).stream(SEND_STREAMING_MESSAGE, sending("x"), Context())
    assert len(await stream.batch()) == 1
    await stream.aclose()
    assert await stream.batch() == ()


# -- memory, reload


async def test_accounts_of_callers_at_rest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "KEPT", 100)
    one = Admitting(default=Rule(calls_per_second=1.0, streams=1))
    held = await one.open(Verified(name="holds a stream"))
    for number in range(1_000):
        await one.get(Verified(name=f"caller {number}"))
        one.clock.now += 0.05
    assert len(one.accounts) <= 101
    assert one.left_open("holds a stream") == (0, 1)
    with pytest.raises(RateLimitedError):
        await one.open(Verified(name="holds a stream"))
    await held.aclose()
    assert one.left_open("holds a stream") == (0, 0)


async def test_a_used_up_rate_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "KEPT", 2)
    one = Admitting(default=Rule(calls_per_second=1.0))
    names = [Verified(name=f"caller {number}") for number in range(50)]
    for caller in names:
        await one.get(caller)
    for caller in names:
        with pytest.raises(RateLimitedError):
            await one.get(caller)


async def test_a_reload_changes_the_rules_and_keeps_what_is_open() -> None:
    one = Admitting(CallerRule(name="ci", streams=2))
    first = await one.open()
    after = Admission(Auth(caller=(CallerRule(name="ci", streams=1),)), Verifier(), accounts=one.accounts)
    with pytest.raises(RateLimitedError, match="1 streams open"):
        await after.admitted("search", one.inner["search"]).stream(
            SEND_STREAMING_MESSAGE, sending("x"), Context(caller=CI)
        )
    await first.aclose()
    assert one.left_open() == (0, 0)


# -- the card


BEARER = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
BEARER_JWT = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT"))
API_KEY = SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Gateway-Key"))
MUTUAL = SecurityScheme(mtls_security_scheme=MutualTlsSecurityScheme())
KEY = Key(name="ci", secret=Secret("ci-secret"))
JWT = Jwt(issuer="https://id.example", audience="dragoman")


@pytest.mark.parametrize(
    ("auth", "schemes"),
    [
        (Auth(key=(KEY,), api_key_header="X-Gateway-Key"), {"bearer": BEARER, "apiKey": API_KEY}),
        (Auth(jwt=(JWT,)), {"bearer": BEARER_JWT}),
        (Auth(certificate=(Certificate(san="*"),)), {"mutualTLS": MUTUAL}),
        (Auth(anonymous=True), {}),
    ],
    ids=["keys", "tokens", "certificates", "nobody"],
)
def test_the_card_says_how_to_be_verified_here_and_not_by_the_agent(
    auth: Auth, schemes: dict[str, SecurityScheme]
) -> None:
    from msgspec.structs import replace

    theirs = SecurityRequirement(schemes={"theirs": StringList()})
    skill = AgentSkill(id="s", name="s", description="", tags=(), security_requirements=(theirs,))
    before = replace(card(), security_schemes={"theirs": MUTUAL}, security_requirements=(theirs,), skills=(skill,))
    after = Admission(auth, Verifier()).announced(before)
    assert after.security_schemes == schemes
    assert [list(one.schemes) for one in after.security_requirements] == [[name] for name in schemes]
    assert after.skills[0].security_requirements == ()


def test_where_nobody_has_to_be_verified_nothing_is_required() -> None:
    after = Admission(Auth(key=(KEY,), anonymous=True), Verifier()).announced(card())
    assert list(after.security_schemes) == ["bearer", "apiKey"]
    assert after.security_requirements == ()


async def test_the_extended_card_says_it_too() -> None:
    one = Admitting(key=(KEY,))
    service = one.service()
    assert not service.passes(DIALECT, GET_EXTENDED_AGENT_CARD)
    assert service.passes(DIALECT, GET_TASK)
    found = await service.call(GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest(), Context(caller=CI))
    assert list(found.security_schemes) == ["bearer", "apiKey"]
