"""What outlives a gateway, and who goes on in its place."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from msgspec.structs import replace

from bench.relay import EVENTS, Gateway, killed
from dragoman.cli.main import run
from dragoman.client.client import connect
from tests.gateway.relay.kit import (
    QUICK,
    Posted,
    Receiver,
    agent,
    begun,
    client,
    eventually,
    gateway,
    hook,
    receiver,
    sent,
    state_of,
)


async def test_nothing_is_lost_when_a_gateway_is_killed_with_deliveries_pending(tmp_path: Path) -> None:
    found = await killed("", tmp_path, tasks=50, share=0.5)
    assert found.pending == 50 * EVENTS
    assert found.before < found.pending  # it was in the middle of it
    assert found.lost == 0
    assert found.twice <= found.before  # nothing that was told after the restart was told twice


async def test_a_gateway_that_ends_in_order_leaves_the_rest_to_the_next_one(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'kept.db'}"
    async with agent("1.0") as one, receiver() as hooked:
        async with gateway(one, store=store, relay=replace(QUICK, first=30, most=30)) as (board, url):
            async with client(url, "0.3") as caller:
                hooked.answers += [503]
                task = await begun(caller, config=hook(hooked.url))
                await hooked.until(1)
            assert board.common.relay is not None
        async with gateway(one, store=store) as (board, url):
            assert board.common.relay is not None
            listed = await board.common.relay.outbox.listed()
            assert {one.task_id for one in listed} == {task.id}
            assert [(one.attempts, one.status) for one in listed[:1]] == [(1, 503)]
            async with client(url, "0.3") as caller:
                assert len((await caller.list_task_push_notification_configs(task.id)).configs) == 1


async def test_what_is_dead_is_replayed_from_the_command_line_while_the_gateway_runs(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'kept.db'}"
    async with (
        agent("1.0") as one,
        receiver(500) as hooked,
        gateway(one, store=store, relay=replace(QUICK, tries=1)) as (board, url),
        client(url, "1.0") as caller,
    ):
        await begun(caller, config=hook(hooked.url))
        [first] = (await hooked.until(1))[:1]
        relay = board.common.relay
        assert relay is not None

        async def dead() -> bool:
            return (await relay.outbox.stock()).dead == 1

        await eventually(dead)
        command = ["gateway", "deliveries", "replay", "--all", "--store", store]
        assert await asyncio.to_thread(run, command) == 0

        async def again() -> bool:
            return [post.body for post in hooked.posts].count(first.body) == 2

        await eventually(again)


async def test_two_gateways_on_one_database_share_the_work_and_no_line_is_told_by_both(postgres_url: str) -> None:
    few = replace(QUICK, in_flight=4)
    async with (
        agent("1.0") as one,
        receiver() as hooked,
        gateway(one, store=postgres_url, relay=few) as (first, url),
        gateway(one, store=postgres_url, relay=few) as (second, _),
        client(url, "1.0") as caller,
    ):
        one.steps.go.set()
        hooked.open.clear()
        for number in range(40):
            await caller.send_message(sent("go", hook(f"{hooked.url}/{number}")))
        await hooked.until(8)  # either has as many in hand as it may
        hooked.open.set()
        await _completed(hooked, 40)
        assert hooked.most_at_once == 1
        assert len(hooked.posts) == len({(post.path, post.body) for post in hooked.posts})
        relays = [board.common.relay for board in (first, second) if board.common.relay is not None]

        async def counted() -> bool:
            return sum(relay.counts.delivered for relay in relays) == len(hooked.posts)

        await eventually(counted)
        assert all(relay.counts.delivered for relay in relays)


async def test_a_webhook_that_is_registered_at_two_gateways_at_once_is_one(postgres_url: str) -> None:
    async with (
        agent("1.0") as one,
        receiver() as hooked,
        gateway(one, store=postgres_url) as (_, url),
        gateway(one, store=postgres_url) as (_, other_url),
        client(url, "1.0") as caller,
        client(other_url, "0.3") as other,
    ):
        task = await begun(caller)
        wanted = hook(hooked.url, task_id=task.id, id="same")
        both = (caller, other)
        await asyncio.gather(*(who.create_task_push_notification_config(wanted) for who in both for _ in range(4)))
        for who in both:
            assert len((await who.list_task_push_notification_configs(task.id)).configs) == 1
        one.steps.go.set()
        posts = await _completed(hooked, 1)
        assert len({post.body for post in posts}) == len(posts)


async def test_what_was_registered_at_one_gateway_is_told_by_another_when_that_is_killed(
    postgres_url: str, tmp_path: Path
) -> None:
    async with agent("1.0") as one, receiver() as hooked, gateway(one, store=postgres_url) as (board, url):
        relay = f'timeout = 1\ncallback_url = "{url}"'
        other = Gateway(one.url, postgres_url, tmp_path, relay, name="agent0")
        await other.start()
        async with connect(other.url, version="0.3") as caller:
            hooked.open.clear()
            tasks = [await begun(caller, config=hook(f"{hooked.url}/{number}")) for number in range(10)]
            await hooked.until(1)  # whoever has the line has it in hand
        await other.end(signal.SIGKILL)
        hooked.open.set()
        one.steps.go.set()
        posts = await _completed(hooked, 10)
        assert all(post.json["kind"] == "task" for post in posts)
        assert {post.json["id"] for post in posts} == {task.id for task in tasks}
        assert board.common.relay is not None and board.common.relay.counts.delivered >= 10


async def _completed(hooked: Receiver, number: int) -> list[Posted]:
    """Wait until so many lines were told the end; everything that was posted by then."""

    async def there() -> bool:
        return len({post.path for post in hooked.posts if state_of(post) == "completed"}) == number

    await eventually(there)
    return hooked.posts
