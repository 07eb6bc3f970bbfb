"""What goes on without its caller is on the caller's account, and there is only so much of it."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import RateLimitedError, UnavailableError
from dragoman.faces import Face
from dragoman.gateway.accounts import Account
from dragoman.gateway.admission import OpenCall, OpenStream
from dragoman.gateway.background import Background
from dragoman.gateway.config import Auth, Secret
from dragoman.gateway.config.auth import CallerRule, Key, Rule
from dragoman.model import AgentCard
from dragoman.security.callers import Verified
from dragoman.service import Context
from tests.gateway.lacking import SILENT, rig, sending, soon
from tests.server.callers import CARD

JSONRPC = Face("JSONRPC", "1.0")
AUTH = Auth(
    key=(Key(name="bob", secret=Secret("bob-key")), Key(name="alice", secret=Secret("alice-key"))),
    caller=(CallerRule(name="bob", concurrent_calls=1, streams=1),),
)


def of(name: str, account: Account | None = None) -> Context:
    return Context(
        caller=Verified(name=name) if name else Context().caller, lease=OpenCall(account) if account else None
    )


async def test_an_account_is_given_back_once_when_both_the_caller_and_the_background_have_let_go() -> None:
    background, go = Background(), asyncio.Event()
    for kind, field in ((OpenCall, "calls"), (OpenStream, "streams")):
        go.clear()
        account = Account(Rule(), 0.0)
        setattr(account, field, 1)
        lease = kind(account)
        work = background.start(_waiting(go), "work", Context(lease=lease))
        lease.release()
        assert getattr(account, field) == 1
        late = background.start(_waiting(go), "late", Context(lease=lease))
        go.set()
        await asyncio.gather(work, late)
        await soon(lambda account=account, field=field: getattr(account, field) == 0)  # type: ignore[misc]
        lease.share()()  # one that comes after all
        assert getattr(account, field) == 0
    await background.aclose()


async def test_it_is_given_back_when_the_work_fails_or_is_cancelled() -> None:
    background, account = Background(), Account(Rule(), 0.0)
    account.calls = 1
    ctx = of("bob", account)

    async def failing() -> None:
        raise RuntimeError("no")

    failed = background.start(failing(), "failing", ctx)
    background.start(_waiting(asyncio.Event()), "cancelled", ctx)
    assert isinstance(ctx.lease, OpenCall)
    ctx.lease.release()
    await asyncio.wait((failed,))
    assert account.calls == 1
    await background.aclose()
    await soon(lambda: account.calls == 0 and not len(background))


async def test_there_is_only_so_much_of_one_caller_and_in_all() -> None:
    background, go = Background(most=4, of_one=1), asyncio.Event()
    callers = ["bob", "", ""]
    for name in callers:
        background.start(_waiting(go), "work", of(name))
    for name in ("bob", ""):
        with pytest.raises(RateLimitedError):
            background.start(_waiting(go), "work", of(name))
    background.start(_waiting(go), "work", of("alice"))
    with pytest.raises(UnavailableError):
        background.start(_waiting(go), "work", of("carol"))
    own = background.start(_waiting(go), "our own")
    go.set()
    await own
    await soon(lambda: not len(background))
    await background.start(_waiting(go), "work", of("bob"))
    await background.aclose()


async def _waiting(go: asyncio.Event) -> None:
    await go.wait()


@pytest.mark.parametrize("card", [SILENT, CARD], ids=["detached", "leading"])
async def test_a_send_that_was_answered_at_once_counts_until_the_agent_is_done(card: AgentCard) -> None:
    async with rig(card, waits=True if card is SILENT else None, emulate=("return-at-once",), auth=AUTH) as one:
        bob, alice = [await one.client(JSONRPC, f"{name}-key") for name in ("bob", "alice")]
        await bob.send_message(sending("ask" if card is CARD else "mute", at_once=True))
        with pytest.raises(RateLimitedError):
            await bob.send_message(sending("say x", at_once=True))
        assert (await alice.send_message(sending("say x", at_once=True))).message is not None
        one.stage.go(5)
        await one.stage.done.wait()
        await soon(lambda: not len(one.board.common.background))
        assert (await bob.send_message(sending("say x", at_once=True))).message is not None


async def test_a_stream_whose_caller_left_counts_until_its_message_is_sent() -> None:
    async with rig(SILENT, waits=True, emulate=("streaming",), auth=AUTH) as one:
        bob = await one.client(JSONRPC, "bob-key")
        leaving = asyncio.ensure_future(bob.send_streaming_message(sending("mute")))
        await one.stage.begun.wait()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        with pytest.raises(RateLimitedError):
            await bob.send_streaming_message(sending("say x"))
        one.stage.go()
        await one.stage.done.wait()
        await soon(lambda: not len(one.board.common.background))
        async with asyncio.timeout(10):
            while True:  # the server may not have seen yet that its caller left
                try:
                    stream = await bob.send_streaming_message(sending("say x"))
                    break
                except RateLimitedError:
                    continue
        await stream.aclose()
