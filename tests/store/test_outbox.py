"""What an outbox keeps and who gets to serve it, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from dragoman.errors import UnavailableError
from dragoman.model import TaskPushNotificationConfig
from dragoman.store.opening import open_database
from dragoman.store.outbox import Change, Claim, Registration, Scope, Settled, State, Tell, Watch
from dragoman.store.sql.database import Database
from dragoman.store.sql.outbox import Outbox

ADA = Scope("agent", "acme", "ada")
OTHERS = [
    Scope("other", "acme", "ada"),
    Scope("agent", "", "ada"),
    Scope("agent", "acme", ""),
    Scope("agent", "ada", "acme"),
]
LEASE = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def outbox(database: Database, clock: Clock) -> Outbox:
    return Outbox(database, clock=clock)


@pytest.fixture
async def second(database_url: str, clock: Clock) -> AsyncIterator[Outbox]:
    """The same outbox, as another gateway has it."""
    database = await open_database(database_url)
    yield Outbox(database, clock=clock)
    await database.aclose()


def watch(id: str = "w", **more: object) -> Watch:
    return Watch(**{"id": id, "scope": ADA, "reference": f"ref-{id}", "secret": "s", "task_id": "t", **more})  # type: ignore[arg-type]


def registration(id: str = "r", watch_id: str = "w", created: float = 0.0) -> Registration:
    config = TaskPushNotificationConfig(id=f"c-{id}", url="https://h/x")
    return Registration(id=id, watch_id=watch_id, config=config, version="0.3", created=created)


async def told(outbox: Outbox, *tells: Tell, watch_id: str = "w") -> None:
    assert await outbox.change(watch_id, lambda state: Change(tell=tells)) is not None


async def claim(outbox: Outbox, clock: Clock, holder: str = "h", lines: int = 10, each: int = 10) -> tuple[Claim, ...]:
    return await outbox.claim(holder, clock.now + LEASE, lines=lines, each=each)


def bodies(claims: tuple[Claim, ...]) -> list[list[bytes]]:
    return [[one.body for one in found.deliveries] for found in claims]


async def test_a_watch_is_found_by_whom_it_is_for_and_by_nobody_else(outbox: Outbox) -> None:
    await outbox.open(watch(), registration("b", created=2.0), registration("a", created=1.0))
    [state] = await outbox.find(ADA, "t")
    assert state.watch == watch()
    assert [line.registration.id for line in state.lines] == ["a", "b"] or [
        line.registration for line in state.lines
    ] == [
        registration("a", created=1.0),
        registration("b", created=2.0),
    ]
    for other in OTHERS:
        assert await outbox.find(other, "t") == ()
    assert await outbox.find(ADA, "other") == ()
    assert await outbox.known("ref-w") == watch()
    assert await outbox.known("ref") is None


NAMES = ("a\0b", "a\1\2b", "a\1b", "ä", "a" * 6000, "a" * 6000 + "b")


async def test_ids_of_any_length_and_characters_are_told_apart(outbox: Outbox) -> None:
    for number, name in enumerate(NAMES):
        await outbox.open(watch(f"w{number}", task_id=name, scope=Scope("agent", name, name)))
    for number, name in enumerate(NAMES):
        [state] = await outbox.find(Scope("agent", name, name), name)
        assert (state.watch.id, state.watch.task_id) == (f"w{number}", name)


@pytest.mark.parametrize("name", NAMES)
async def test_who_delivers_or_looks_reads_an_id_as_it_is(outbox: Outbox, clock: Clock, name: str) -> None:
    await outbox.open(watch(task_id=""), registration())
    await outbox.change("w", lambda state: Change(watch=replace(state.watch, task_id=name), tell=(Tell("r", b"1"),)))
    [one] = await outbox.listed(task_id=name)
    assert one.task_id == name
    [found] = await claim(outbox, clock)
    assert found.task_id == name


async def test_of_changes_made_together_only_that_which_cannot_be_made_fails(outbox: Outbox) -> None:
    for number in range(4):
        await outbox.open(watch(f"w{number}"), registration(f"r{number}", f"w{number}"))
    unknown = Change(tell=(Tell("nobody's", b"1"),))
    outcomes = await asyncio.gather(
        *(outbox.change(f"w{n}", lambda state, n=n: unknown if n == 1 else Change(drop=(f"r{n}",))) for n in range(4)),  # type: ignore[misc]
        return_exceptions=True,
    )
    assert [isinstance(one, Change) for one in outcomes] == [True, False, True, True]
    assert isinstance(outcomes[1], Exception) and not isinstance(outcomes[1], UnavailableError)
    assert [len(state.lines) for state in await outbox.find(ADA, "t")] == [0, 1, 0, 0]


async def test_a_change_does_all_that_it_says(outbox: Outbox) -> None:
    await outbox.open(watch(task_id=""), registration("a"), registration("b"))

    def decide(state: State) -> Change:
        behind = replace(state.lines[0].registration, behind=True)
        return Change(
            watch=replace(state.watch, task_id="named"), put=(behind, registration("c", created=3.0)), drop=("b",)
        )

    await outbox.change("w", decide)
    [state] = await outbox.find(ADA, "named")
    assert [(line.registration.id, line.registration.behind) for line in state.lines] == [("a", True), ("c", False)]
    await outbox.change("w", lambda state: Change(gone=True))
    assert await outbox.find(ADA, "named") == ()


async def test_nothing_of_a_change_happens_if_deciding_fails(outbox: Outbox) -> None:
    await outbox.open(watch(), registration())
    with pytest.raises(ZeroDivisionError):
        await outbox.change("w", lambda state: Change(gone=bool(1 / 0)))
    assert await outbox.change("w", lambda state: None) is None
    assert await outbox.change("unknown", lambda state: Change(gone=True)) is None
    [state] = await outbox.find(ADA, "t")
    assert len(state.lines) == 1


async def test_changes_of_one_watch_happen_one_after_the_other(outbox: Outbox, second: Outbox) -> None:
    await outbox.open(watch(), registration())

    def count(state: State) -> Change:
        return Change(watch=replace(state.watch, recent=(*state.watch.recent, "x")))

    await asyncio.gather(*(one.change("w", count) for one in (outbox, second) for _ in range(20)))
    [state] = await outbox.find(ADA, "t")
    assert len(state.watch.recent) == 40


async def test_a_line_is_claimed_with_what_waits_in_its_order(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration("a"), registration("b"))
    await told(outbox, Tell("a", b"1"), Tell("b", b"2"), Tell("a", b"3", last=True), Tell("a", b"4"))
    found = await claim(outbox, clock, each=2)
    assert sorted(bodies(found)) == [[b"1", b"3"], [b"2"]]
    [one] = [found for found in found if found.registration.id == "a"]
    assert [delivery.last for delivery in one.deliveries] == [False, True]
    assert (one.task_id, one.failures) == ("t", 0)


async def test_who_has_a_line_has_it_alone_until_its_time_is_over(outbox: Outbox, second: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"))
    assert bodies(await claim(outbox, clock, "one")) == [[b"1"]]
    await told(outbox, Tell("r", b"2"))
    assert await claim(second, clock, "two") == ()
    clock.now += LEASE - 1
    await outbox.extend("one", clock.now + LEASE)
    clock.now += LEASE - 1
    assert await claim(second, clock, "two") == ()
    assert await second.next_due() == clock.now + 1
    clock.now += 2
    assert bodies(await claim(second, clock, "two")) == [[b"1", b"2"]]
    # what the first one did is still done, and the line stays with who has it now
    await outbox.settle("one", [Settled(registration_id="r", delivered=(1,))])
    assert await claim(outbox, clock, "one") == ()
    clock.now += LEASE + 1
    assert bodies(await claim(outbox, clock, "one")) == [[b"2"]]


async def test_a_clock_that_is_put_back_holds_nothing_up(outbox: Outbox, second: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration("held"), registration("waits"))
    await told(outbox, Tell("held", b"1"))
    await claim(outbox, clock, "dead")
    await told(outbox, Tell("waits", b"2"))
    clock.now -= 900
    assert await claim(second, clock, "two") == ()
    assert await second.bring_near(due=clock.now + 60, until=clock.now + LEASE) == 3  # both wait, one is held
    assert await second.bring_near(due=clock.now + 60, until=clock.now + LEASE) == 0
    clock.now += 61
    assert sorted(bodies(await claim(second, clock, "two"))) == [[b"1"], [b"2"]]


async def test_several_who_claim_at_once_share_what_there_is(outbox: Outbox, second: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), *(registration(f"r{number}") for number in range(20)))
    await told(outbox, *(Tell(f"r{number}", b"x") for number in range(20)))
    calls = [claim(one, clock, name, 5) for one, name in ((outbox, "one"), (second, "two")) for _ in range(3)]
    found = [one.registration.id for claims in await asyncio.gather(*calls) for one in claims]
    found += [one.registration.id for one in await claim(outbox, clock, "one", 20)]
    assert len(found) == len(set(found)) == 20


async def test_what_was_delivered_is_gone_and_the_rest_is_served_at_once(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"), Tell("r", b"2"))
    [one] = await claim(outbox, clock, each=1)
    await outbox.settle("h", [Settled(registration_id="r", delivered=(one.deliveries[0].id,))])
    [one] = await claim(outbox, clock)
    assert bodies((one,)) == [[b"2"]]
    await outbox.settle("h", [Settled(registration_id="r", delivered=(one.deliveries[0].id,))])
    assert await outbox.next_due() is None
    assert (await outbox.stock()) == (1, 0, 0)


async def test_what_failed_is_served_again_when_it_is_due(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"))
    [one] = await claim(outbox, clock)
    failed = Settled(registration_id="r", failed=one.deliveries[0].id, status=503, failures=1, due=clock.now + 7)
    await outbox.settle("h", [failed])
    assert await claim(outbox, clock) == ()
    assert await outbox.next_due() == clock.now + 7
    clock.now += 7
    [one] = await claim(outbox, clock)
    assert (one.failures, one.deliveries[0].attempts) == (1, 1)
    [listed] = await outbox.listed()
    assert (listed.status, listed.attempts, listed.dead, listed.url) == (503, 1, False, "https://h/x")


async def test_the_dead_are_kept_listed_and_replayed_in_their_order(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"), Tell("r", b"2", last=True))
    for ended in (False, True):
        [one] = await claim(outbox, clock, each=1)
        dead = Settled(registration_id="r", failed=one.deliveries[0].id, status=500, dead=True, failures=3, ended=ended)
        await outbox.settle("h", [dead])
    assert await claim(outbox, clock) == ()
    assert await outbox.stock() == (0, 0, 2)
    [state] = await outbox.find(ADA, "t")
    assert state.lines == ()
    found = await outbox.listed(agent="agent", task_id="t", dead=True)
    assert [(one.dead, one.status) for one in found] == [(True, 500), (True, 500)]
    assert await outbox.listed(agent="other") == ()
    ids = await outbox.dead()
    assert await outbox.replay([*reversed(ids), 4711]) == 2
    [one] = await claim(outbox, clock)
    assert bodies((one,)) == [[b"1", b"2"]] and one.failures == 0
    await outbox.settle("h", [Settled(registration_id="r", delivered=ids, ended=True)])
    assert await outbox.stock() == (0, 0, 0)


async def test_what_is_dropped_is_not_delivered(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"), Tell("r", b"2"))
    first, _ = await outbox.listed()
    assert await outbox.drop([first.id, 4711]) == 1
    assert bodies(await claim(outbox, clock)) == [[b"2"]]


async def test_a_webhook_that_is_gone_takes_its_deliveries_along(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration("a"), registration("b"))
    await told(outbox, Tell("a", b"1"), Tell("a", b"2"), Tell("b", b"3"))
    await claim(outbox, clock)
    await outbox.settle("h", [Settled(registration_id="a", gone=True)])
    [state] = await outbox.find(ADA, "t")
    assert [line.registration.id for line in state.lines] == ["b"]
    assert len(await outbox.listed()) == 1


@pytest.mark.parametrize(
    ("how", "part", "left"),
    [
        ("behind", True, [b"1", b"2", b"new"]),
        ("newest", True, [b"1", b"new"]),
        ("newest", False, [b"1", b"2", b"new"]),
        ("all", True, [b"new"]),
        ("all", False, [b"new"]),
    ],
)
async def test_what_is_told_takes_the_place_that_it_should(
    outbox: Outbox, clock: Clock, how: str, part: bool, left: list[bytes]
) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"), Tell("r", b"2", part=part))
    [state] = await outbox.find(ADA, "t")
    assert (state.lines[0].waiting, state.lines[0].part) == (2, part)
    await told(outbox, Tell("r", b"new", how))  # type: ignore[arg-type]
    assert bodies(await claim(outbox, clock)) == [left]


async def test_what_somebody_has_in_hand_is_not_replaced(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1", part=True))
    [one] = await claim(outbox, clock)
    [state] = await outbox.find(ADA, "t")
    assert (state.lines[0].waiting, state.lines[0].part) == (0, False)
    await told(outbox, Tell("r", b"2", "newest", part=True))
    await told(outbox, Tell("r", b"3", "all"))
    failed = Settled(registration_id="r", failed=one.deliveries[0].id, failures=1, due=clock.now)
    await outbox.settle("h", [failed])
    assert bodies(await claim(outbox, clock)) == [[b"1", b"3"]]


async def test_giving_back_makes_lines_free_at_once(outbox: Outbox, second: Outbox, clock: Clock) -> None:
    await outbox.open(watch(), registration())
    await told(outbox, Tell("r", b"1"))
    assert await claim(outbox, clock, "one")
    await second.release("two")
    assert await claim(second, clock, "two") == ()
    await second.release("one")
    assert await claim(second, clock, "two")
    await outbox.release()
    assert await claim(outbox, clock, "one")


async def test_pruning_forgets_what_is_over_and_nothing_else(outbox: Outbox, clock: Clock) -> None:
    await outbox.open(watch("ended", ended=True, task_id="a"))
    await outbox.open(watch("idle", task_id="b"), registration("i", "idle"))
    await outbox.open(watch("busy", task_id="c"), registration("r", "busy"))
    await outbox.open(watch("mourning", ended=True, task_id="d"), registration("d", "mourning"))
    await told(outbox, Tell("r", b"1"), watch_id="busy")
    await told(outbox, Tell("d", b"1", last=True), watch_id="mourning")
    [one] = [one for one in await claim(outbox, clock) if one.registration.id == "d"]
    dead = Settled(registration_id="d", failed=one.deliveries[0].id, dead=True, ended=True)
    await outbox.settle("h", [dead])
    await outbox.prune(dead=clock.now, ended=clock.now, idle=clock.now)
    assert [bool(await outbox.find(ADA, task)) for task in "abcd"] == [True] * 4
    clock.now += 10
    await outbox.prune(dead=clock.now - 20, ended=clock.now - 5, idle=clock.now - 20)
    assert [bool(await outbox.find(ADA, task)) for task in "abcd"] == [False, True, True, True]
    await outbox.prune(dead=clock.now - 5, ended=clock.now - 5, idle=clock.now - 5)
    assert [bool(await outbox.find(ADA, task)) for task in "abcd"] == [False, False, True, False]
    assert await outbox.stock() == (1, 1, 0)
