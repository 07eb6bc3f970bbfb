"""What is taken down of tasks that pass: in which order it counts, and what a store that fails does to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import UnavailableError
from dragoman.gateway.seen import Bounds, Seen
from dragoman.model import (
    Artifact,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.store.base import Owner, TaskQuery
from dragoman.store.memory import MemoryStore

ALICE: Owner = ("agent/", "alice")
BOB: Owner = ("agent/", "bob")
AT_ONCE = Bounds(pause=0.0, retry=0.01)
S = TaskState


def task(id: str = "t", state: TaskState = S.WORKING, second: int = 1) -> Task:
    return Task(id=id, context_id="c", status=TaskStatus(state=state, timestamp=f"2026-01-01T00:00:0{second}.000Z"))


def status(state: TaskState, second: int) -> StreamResponse:
    update = TaskStatusUpdateEvent(task_id="t", context_id="c", status=task("t", state, second).status)
    return StreamResponse(status_update=update)


def chunk(text: str, append: bool = True) -> StreamResponse:
    artifact = Artifact(artifact_id="x", parts=(Part(text=text),))
    update = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
    return StreamResponse(artifact_update=update)


class Faulty(MemoryStore):
    """Fails as long as it is told to; keeps what was saved, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.saved: list[Task] = []
        self.stored = asyncio.Event()

    async def save(self, owner: Owner, task: Task) -> None:
        if self.error is not None:
            raise self.error
        await super().save(owner, task)
        self.saved.append(task)
        self.stored.set()


async def listed(seen: Seen, owner: Owner = ALICE) -> list[Task]:
    return list((await seen.list(owner, TaskQuery())).tasks)


async def test_what_was_seen_is_written_without_anybody_asking() -> None:
    store = Faulty()
    seen = Seen(store, bounds=AT_ONCE)
    seen.see(ALICE, task())
    async with asyncio.timeout(10):
        await store.stored.wait()
    assert store.saved == [task()]
    await seen.aclose()


async def test_what_was_seen_before_is_read() -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60))
    seen.see(ALICE, task())
    seen.see(BOB, task("u"))
    assert await listed(seen) == [task()]
    assert await listed(seen, BOB) == [task("u")]
    await seen.aclose()


async def test_the_end_writes_what_waits() -> None:
    store = Faulty()
    seen = Seen(store, bounds=Bounds(pause=60))
    seen.see(ALICE, task())
    await seen.aclose()
    assert store.saved == [task()]


@pytest.mark.parametrize("written_between", [False, True])
async def test_an_older_snapshot_that_comes_late_changes_nothing(written_between: bool) -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60))
    for one in (task(state=S.COMPLETED, second=5), task(second=3), task(second=9)):
        seen.see(ALICE, one)
        if written_between:
            await seen.flush()
    assert await listed(seen) == [task(state=S.COMPLETED, second=5)]
    await seen.aclose()


async def test_many_sights_of_one_task_are_one_write() -> None:
    store = Faulty()
    seen = Seen(store, bounds=Bounds(pause=60))
    for second in range(1, 6):
        seen.see(ALICE, task(second=second))
    await seen.flush()
    seen.see(ALICE, task(second=5))
    await seen.flush()
    assert store.saved == [task(second=5)]
    await seen.aclose()


async def test_the_events_of_a_stream_make_a_task() -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60))
    stream = seen.follow(ALICE)
    stream.take([StreamResponse(task=task()), chunk("a", append=False)])
    [half] = await listed(seen)
    assert [part.text for part in half.artifacts[0].parts] == ["a"]
    stream.take([chunk("b")])
    stream.take([status(S.COMPLETED, 4)])
    stream.take([status(S.WORKING, 5)])
    [whole] = await listed(seen)
    assert [part.text for part in whole.artifacts[0].parts] == ["a", "b"]
    assert whole.status == task(state=S.COMPLETED, second=4).status
    await seen.aclose()


async def test_a_stream_and_other_calls_tell_of_one_task_together() -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60))
    stream = seen.follow(ALICE)
    stream.take([StreamResponse(task=task()), chunk("a", append=False)])
    seen.see(ALICE, task())
    stream.take([chunk("b")])
    seen.see(ALICE, task(state=S.CANCELED, second=3))
    stream.take([status(S.WORKING, 2)])
    [found] = await listed(seen)
    assert found.status.state is S.CANCELED and len(found.artifacts[0].parts) == 2
    await seen.aclose()


async def test_a_task_that_is_gone_is_not_kept_and_may_come_back() -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60))
    seen.see(ALICE, task(state=S.COMPLETED, second=5))
    await seen.flush()
    seen.forget(ALICE, "t")
    assert await listed(seen) == []
    seen.see(ALICE, task(state=S.COMPLETED, second=5))
    await seen.flush()
    seen.forget(ALICE, "t")
    seen.see(ALICE, task(second=1))
    assert await listed(seen) == [task(second=1)]
    await seen.aclose()


async def test_a_status_without_a_time_gets_that_of_its_first_sight() -> None:
    times = iter(["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z"])
    seen = Seen(MemoryStore(), bounds=Bounds(pause=60), clock=lambda: next(times))
    bare = replace(task(), status=TaskStatus(state=S.WORKING))
    for _ in range(3):
        seen.see(ALICE, bare)
        assert [one.status.timestamp for one in await listed(seen)] == ["2026-01-01T00:00:01.000Z"]
    seen.see(ALICE, replace(bare, status=TaskStatus(state=S.COMPLETED)))
    [found] = await listed(seen)
    assert (found.status.state, found.status.timestamp) == (S.COMPLETED, "2026-01-01T00:00:02.000Z")
    await seen.aclose()


async def test_a_store_that_fails_keeps_what_is_to_be_written_waiting() -> None:
    store = Faulty()
    seen = Seen(store, bounds=AT_ONCE)
    store.error = UnavailableError("down")
    seen.see(ALICE, task())
    with pytest.raises(UnavailableError):
        await seen.flush()
    seen.see(ALICE, task(state=S.COMPLETED, second=2))
    with pytest.raises(UnavailableError):
        await seen.flush()
    seen.see(ALICE, task(second=1))
    store.error = None
    async with asyncio.timeout(10):
        await store.stored.wait()
    assert store.saved == [task(state=S.COMPLETED, second=2)]
    await seen.aclose()


async def test_a_task_that_the_store_cannot_take_keeps_no_other_from_it(caplog: Any) -> None:
    class Picky(Faulty):
        async def save(self, owner: Owner, task: Task) -> None:
            self.error = ValueError("not this one") if task.id == "bad" else None
            await super().save(owner, task)

    store = Picky()
    seen = Seen(store, bounds=Bounds(pause=60))
    for name in ("a", "bad", "b"):
        seen.see(ALICE, task(name))
    await seen.flush()
    assert [one.id for one in store.saved] == ["a", "b"] and "could not be written" in caplog.text
    await seen.aclose()


async def test_a_write_that_is_cancelled_loses_nothing() -> None:
    class Slow(Faulty):
        def __init__(self) -> None:
            super().__init__()
            self.go = asyncio.Event()
            self.begun = asyncio.Event()

        async def save(self, owner: Owner, task: Task) -> None:
            self.begun.set()
            await self.go.wait()
            await super().save(owner, task)

    store = Slow()
    seen = Seen(store, bounds=Bounds(pause=60))
    seen.see(ALICE, task())
    reading = asyncio.ensure_future(listed(seen))
    await store.begun.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    store.go.set()
    assert await listed(seen) == [task()]
    await seen.aclose()


async def test_what_waits_is_bounded_and_what_is_too_much_is_not_taken_down(caplog: Any) -> None:
    seen = Seen(MemoryStore(), bounds=Bounds(tasks=2, bytes=10, pause=60))
    for name in ("a", "b", "c", "a"):
        seen.see(ALICE, task(name))
    assert seen.dropped == 1 and "not taken down" in caplog.text
    assert {one.id for one in await listed(seen)} == {"a", "b"}
    seen.later(8, lambda: seen.see(ALICE, task("d")))
    seen.later(8, lambda: seen.see(ALICE, task("e")))
    assert {one.id for one in await listed(seen)} == {"a", "b", "d"}
    seen.later(8, lambda: seen.see(ALICE, task("e")))
    assert len(await listed(seen)) == 4 and seen.dropped == 2
    await seen.aclose()


async def test_what_a_cut_call_sees_after_the_end_starts_nothing() -> None:
    seen = Seen(MemoryStore())
    await seen.aclose()
    seen.see(ALICE, task("late"))
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "dragoman-index"]
