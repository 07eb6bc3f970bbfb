"""How webhooks are told: in order, again after failures, never beyond the end, and what is left of what they refuse."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from dragoman.errors import InvalidParamsError, PushNotificationNotSupportedError, TaskNotFoundError
from dragoman.gateway.config import Relay as Settings
from dragoman.gateway.relay.relay import CALLBACKS, Relay
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import DeleteTaskPushNotificationConfigRequest
from dragoman.protocol.operations import Version
from tests.gateway.relay.kit import (
    QUICK,
    VERSIONS,
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


def relay_of(board: Switchboard) -> Relay:
    assert board.common.relay is not None
    return board.common.relay


def naming(task_id: str, id: str) -> DeleteTaskPushNotificationConfigRequest:
    return DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=id)


async def until(board: Switchboard, **wanted: int) -> None:
    """Wait for counts of the relay."""
    counts = relay_of(board).counts

    async def there() -> bool:
        return all(getattr(counts, name) >= value for name, value in wanted.items())

    await eventually(there)


async def at_rest(board: Switchboard) -> None:
    """Wait until nothing is to be delivered."""

    async def there() -> bool:
        return not (await relay_of(board).outbox.stock()).pending

    await eventually(there)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_webhook_that_fails_is_told_again_in_order_with_growing_waits(version: Version) -> None:
    async with (
        agent("1.0") as one,
        gateway(one) as (board, url),
        receiver(500, 503, 302) as hooked,
        client(url, version) as caller,
    ):
        task = await begun(caller, config=hook(hooked.url))
        one.steps.go.set()
        posts = await hooked.until_state("completed")
        assert len({post.body for post in posts[:4]}) == 1  # three failures and then the same once more
        assert hooked.most_at_once == 1
        first, second, third = (
            after - before for before, after in zip(hooked.times[:3], hooked.times[1:4], strict=True)
        )
        assert first >= 0.02 and second >= 0.04 and third >= 0.08
        await at_rest(board)
        counts = relay_of(board).counts
        assert (counts.retried, counts.dead) == (3, 0)
        states = [state_of(post) for post in posts[3:] if state_of(post)]
        assert states == sorted(states, key=["submitted", "working", "completed"].index)
        assert task.id in posts[-1].body.decode()


async def test_a_webhook_decides_when_it_wants_to_be_asked_again() -> None:
    settings = replace(QUICK, first=0.01, most=5.0)
    async with (
        agent("1.0") as one,
        gateway(one, relay=settings) as (_, url),
        receiver((503, {"retry-after": "1"})) as hooked,
        client(url, "1.0") as caller,
    ):
        await begun(caller, config=hook(hooked.url))
        await hooked.until(2)
        assert hooked.times[1] - hooked.times[0] >= 0.99


async def test_a_webhook_that_is_gone_is_told_no_more() -> None:
    async with (
        agent("0.3") as one,
        gateway(one) as (board, url),
        receiver(410) as hooked,
        receiver() as other,
        client(url, "1.0") as caller,
    ):
        task = await begun(caller, config=hook(hooked.url))
        await caller.create_task_push_notification_config(hook(other.url, task_id=task.id, id="other"))
        await until(board, gone=1)
        one.steps.go.set()
        await other.until_state("completed")
        assert len(hooked.posts) == 1
        await at_rest(board)
        assert (await caller.list_task_push_notification_configs(task.id)).configs == ()


@pytest.mark.parametrize("version", VERSIONS)
async def test_webhooks_that_are_registered_at_once_have_one_callback_and_each_is_told_once(version: Version) -> None:
    async with (
        agent(version) as one,
        gateway(one) as (board, url),
        receiver() as hooked,
        receiver() as other,
        client(url, version) as caller,
    ):
        task = await begun(caller)
        several = [hook(hooked.url, task_id=task.id, id="same")] * 6 + [hook(other.url, task_id=task.id, id="other")]
        await asyncio.gather(*map(caller.create_task_push_notification_config, several))
        found = await caller.list_task_push_notification_configs(task.id)
        assert sorted(config.id for config in found.configs) == ["other", "same"]
        assert b"".join(body for _, body in one.asked).count(CALLBACKS.encode()) == 1
        one.steps.go.set()
        await asyncio.gather(hooked.until_state("completed"), other.until_state("completed"))
        await at_rest(board)
        assert len({post.body for post in hooked.posts}) == len(hooked.posts)


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_given_up_is_kept_and_the_line_goes_on_with_the_whole_task(version: Version) -> None:
    async with (
        agent("1.0") as one,
        gateway(one, relay=replace(QUICK, tries=2)) as (board, url),
        receiver(500, 500) as hooked,
        client(url, version) as caller,
    ):
        task = await begun(caller, config=hook(hooked.url))
        await until(board, dead=1)
        one.steps.go.set()
        posts = await hooked.until_state("completed")
        told = posts[2].json
        assert (told if version == "0.3" else told["task"])["id"] == task.id
        await at_rest(board)
        [dead] = await relay_of(board).outbox.listed(dead=True)
        assert (dead.status, dead.attempts, dead.version, dead.task_id) == (500, 2, version, task.id)
        assert await relay_of(board).outbox.replay([dead.id]) == 1
        await hooked.until(len(posts) + 1)
        assert hooked.posts[-1].body == posts[0].body
        await at_rest(board)
        assert await relay_of(board).outbox.stock() == (0, 0, 0)


async def test_nothing_is_left_of_a_webhook_after_the_end_of_its_task() -> None:
    async with (
        agent("1.0") as one,
        gateway(one) as (board, url),
        receiver() as hooked,
        client(url, "1.0") as caller,
    ):
        task = await begun(caller, config=hook(hooked.url))
        one.steps.go.set()
        await hooked.until_state("completed")
        await at_rest(board)
        assert (await caller.list_task_push_notification_configs(task.id)).configs == ()
        assert (await relay_of(board).outbox.stock()).registrations == 0
        async with client(one.url, "1.0") as direct:

            async def forgotten() -> bool:
                return not (await direct.list_task_push_notification_configs(task.id)).configs

            await eventually(forgotten)


async def test_a_webhook_that_is_slow_keeps_nobody_waiting_and_gets_the_whole_task_when_too_much_waits() -> None:
    async with (
        agent("1.0") as one,
        gateway(one) as (board, url),
        receiver() as slow,
        receiver() as quick,
        client(url, "1.0") as caller,
    ):
        relay_of(board).queue = 2
        slow.open.clear()
        task = await begun(caller, config=hook(slow.url))
        await caller.create_task_push_notification_config(hook(quick.url, task_id=task.id))
        await slow.until(1)
        one.steps.go.set()
        await quick.until_state("completed")
        slow.open.set()
        await slow.until_state("completed")
        await at_rest(board)
        assert slow.most_at_once == 1


async def test_a_webhook_that_comes_after_the_end_is_told_it() -> None:
    async with agent("1.0") as one, gateway(one) as (board, url), receiver() as hooked, client(url, "0.3") as caller:
        one.steps.go.set()
        reply = await caller.send_message(sent("go", None, wait=True))
        assert reply.task is not None
        await caller.create_task_push_notification_config(hook(hooked.url, task_id=reply.task.id))
        posts = await hooked.until(1)
        await at_rest(board)
        assert [state_of(post) for post in posts] == ["completed"]


async def test_a_webhook_that_was_removed_is_told_no_more() -> None:
    async with agent("0.3") as one, gateway(one) as (board, url), receiver() as hooked, client(url, "1.0") as caller:
        task = await begun(caller)
        await caller.create_task_push_notification_config(hook(hooked.url, task_id=task.id, id="mine"))
        for _ in range(2):
            await caller.delete_task_push_notification_config(naming(task.id, "mine"))
        one.steps.go.set()
        async with client(one.url, "0.3") as direct:
            assert (await direct.list_task_push_notification_configs(task.id)).configs == ()

            async def over() -> object:
                return (await direct.get_task(task.id)).artifacts

            await eventually(over)
        assert hooked.posts == [] and relay_of(board).counts.accepted == 0


async def test_a_webhook_of_another_version_under_the_same_id_takes_its_place() -> None:
    async with (
        agent("1.0") as one,
        gateway(one) as (_, url),
        receiver() as hooked,
        client(url, "1.0") as new,
        client(url, "0.3") as old,
    ):
        task = await begun(new)
        await new.create_task_push_notification_config(hook(hooked.url, task_id=task.id, id="mine"))
        await old.create_task_push_notification_config(hook(hooked.url, task_id=task.id, id="mine"))
        assert len((await new.list_task_push_notification_configs(task.id)).configs) == 1
        one.steps.go.set()
        posts = await hooked.until_state("completed")
        assert all(post.json["kind"] == "task" for post in posts)


async def test_a_webhook_may_be_told_bare_events() -> None:
    settings = replace(QUICK, bare_events=True)
    async with (
        agent("1.0") as one,
        gateway(one, relay=settings) as (_, url),
        receiver() as hooked,
        client(url, "0.3") as caller,
    ):
        await begun(caller, config=hook(hooked.url))
        one.steps.go.set()
        posts = await hooked.until_state("completed")
        assert {post.json["kind"] for post in posts} >= {"artifact-update", "status-update"}


# -- what is refused


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/x", "http://127.0.0.1/x", "http://[::1]/x", "http://10.1.2.3/"]
)
async def test_an_address_inside_is_refused_by_name_of_the_field(version: Version, url: str) -> None:
    closed = Settings(tries=1)
    async with agent("1.0") as one, gateway(one, relay=closed) as (board, base), client(base, version) as caller:
        task = await begun(caller)
        asked = len(one.asked)
        for attempt in (
            lambda: caller.create_task_push_notification_config(hook(url, task_id=task.id)),
            lambda: caller.send_message(sent("go", hook(url))),
        ):
            with pytest.raises(InvalidParamsError) as caught:
                await attempt()
            if version == "1.0":
                assert [field for field, _ in caught.value.violations] == ["url"]
        assert len(one.asked) == asked
        assert (await relay_of(board).outbox.stock()).registrations == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_agent_that_does_not_take_the_callback_is_no_fault_of_the_webhook(version: Version) -> None:
    async with agent(version, guarded=True) as one, gateway(one) as (board, url), client(url, "1.0") as caller:
        task = await begun(caller)
        with pytest.raises(PushNotificationNotSupportedError, match="callback"):
            await caller.create_task_push_notification_config(hook("http://127.0.0.1:1/x", task_id=task.id))
        if version == "1.0":  # which says what it complains of
            with pytest.raises(PushNotificationNotSupportedError, match="callback"):
                await caller.send_message(sent("go", hook("http://127.0.0.1:1/x")))

        async def forgotten() -> bool:
            return not (await relay_of(board).outbox.stock()).registrations

        await eventually(forgotten)


async def test_an_address_that_turns_inside_later_is_not_called() -> None:
    async with agent("1.0") as one, gateway(one) as (board, url), receiver() as hooked, client(url, "1.0") as caller:
        await begun(caller, config=hook(hooked.url))
        posts = len(await hooked.until(1))
        relay_of(board).guard._private = False
        one.steps.go.set()
        await until(board, retried=1)
        assert len(hooked.posts) == posts


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_task_that_is_not_there_has_no_webhooks(version: Version) -> None:
    async with agent(version) as one, gateway(one) as (board, url), client(url, "1.0") as caller:
        for attempt in (
            caller.create_task_push_notification_config(hook("http://127.0.0.1:1/x", task_id="nope")),
            caller.list_task_push_notification_configs("nope"),
            caller.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(task_id="nope", id="x")
            ),
        ):
            with pytest.raises(TaskNotFoundError):
                await attempt

        async def forgotten() -> bool:
            return not (await relay_of(board).outbox.stock()).registrations

        await eventually(forgotten)


async def test_a_send_that_is_refused_or_answered_with_a_message_leaves_no_webhook() -> None:
    async with agent("1.0") as one, gateway(one) as (board, url), client(url, "0.3") as caller:
        reply = await caller.send_message(sent("say", hook("http://127.0.0.1:1/x")))
        assert reply.message is not None
        with pytest.raises(TaskNotFoundError):
            await caller.send_message(sent("go", hook("http://127.0.0.1:1/x"), task="nope"))
        assert (await relay_of(board).outbox.stock()).registrations == 0


async def test_callers_see_only_their_own_webhooks_and_anonymous_ones_no_credentials() -> None:
    async with agent("1.0") as one, gateway(one) as (_, url):
        ada = client(url, "1.0", headers={"authorization": "Bearer ada"})
        eve = client(url, "1.0", headers={"authorization": "Bearer eve"})
        async with ada as hers, eve as others, client(url, "1.0") as nobody:
            task = await begun(hers, config=hook("http://127.0.0.1:1/x", id="mine"))
            [config] = (await hers.list_task_push_notification_configs(task.id)).configs
            assert config.token == "hook-token" and config.authentication is not None
            assert config.authentication.credentials == "hook-credentials" and config.task_id == task.id
            for other in (others, nobody):
                assert (await other.list_task_push_notification_configs(task.id)).configs == ()
                await other.create_task_push_notification_config(
                    hook("http://127.0.0.1:1/y", task_id=task.id, id="own")
                )
            [config] = (await nobody.list_task_push_notification_configs(task.id)).configs
            assert (config.id, config.token) == ("own", "hook-token")
            assert config.authentication is not None and config.authentication.credentials == ""
            assert len((await hers.list_task_push_notification_configs(task.id)).configs) == 1


async def test_webhooks_are_refused_where_they_are_switched_off_and_the_card_says_so() -> None:
    async with (
        agent("1.0") as one,
        gateway(one, push="off") as (_, url),
        client(url, "1.0", check_card=False) as caller,
    ):
        assert not caller.card.capabilities.push_notifications
        task = await begun(caller)
        for attempt in (
            lambda: caller.create_task_push_notification_config(hook("http://127.0.0.1:1/x", task_id=task.id)),
            lambda: caller.send_message(sent("go", hook("http://127.0.0.1:1/x"))),
        ):
            with pytest.raises(PushNotificationNotSupportedError):
                await attempt()
        assert not (await caller.get_extended_agent_card()).capabilities.push_notifications


async def test_webhooks_go_to_the_agent_as_they_are_where_that_is_wanted() -> None:
    async with (
        agent("1.0") as one,
        gateway(one, push="direct") as (_, url),
        receiver() as hooked,
        client(url, "1.0") as caller,
        client(url, "0.3") as old,
    ):
        await begun(caller, config=hook(hooked.url))
        assert any(hooked.url in body.decode("latin-1") for _, body in one.asked)
        with pytest.raises(PushNotificationNotSupportedError):
            await begun(old, config=hook(hooked.url))


async def test_a_conversation_over_several_turns_has_one_callback_and_one_line() -> None:
    async with agent("0.3") as one, gateway(one) as (_, url), receiver() as hooked, client(url, "1.0") as caller:
        one.steps.go.set()
        reply = await caller.send_message(sent("ask", hook(hooked.url), wait=True))
        assert reply.task is not None
        await hooked.until_state("input_required")
        await caller.send_message(sent("go", hook(hooked.url), wait=True, task=reply.task.id))
        posts = await hooked.until_state("completed")
        assert b"".join(body for _, body in one.asked).count(b"/.dragoman/callbacks/") == 1
        assert len(posts) == len({post.body for post in posts})
