"""One list out of several: every task once, newest first, whatever the sizes of pages."""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.errors import InvalidParamsError
from dragoman.gateway import pages
from dragoman.model import ListTasksRequest, ListTasksResponse, Task, TaskState, TaskStatus


def task(number: int) -> Task:
    moment = f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z"
    return Task(id=f"t{number}", status=TaskStatus(state=TaskState.COMPLETED, timestamp=moment))


class Lister:
    """A replica that lists its tasks newest first, ``most`` at a time at best."""

    def __init__(self, numbers: list[int], most: int = 100) -> None:
        self._tasks = [task(number) for number in sorted(numbers, reverse=True)]
        self._most = most

    def page(self, request: ListTasksRequest) -> ListTasksResponse:
        begin = int(request.page_token or 0)
        assert request.page_size is not None
        end = begin + min(request.page_size, self._most)
        token = str(end) if end < len(self._tasks) else ""
        shown = tuple(self._tasks[begin:end])
        return ListTasksResponse(
            tasks=shown, next_page_token=token, page_size=request.page_size, total_size=len(self._tasks)
        )


def read(listers: dict[str, Lister], request: ListTasksRequest) -> ListTasksResponse:
    reading = pages.begin(request, tuple(listers))
    found = {key: listers[key].page(pages.asking(request, reading, key)) for key in reading.rests}
    return pages.merged(request, reading, found)


def walk(listers: dict[str, Lister], sizes: list[int]) -> tuple[list[str], set[int]]:
    ids, totals, token = [], set(), ""
    for step in range(1000):
        page = read(listers, ListTasksRequest(page_size=sizes[step % len(sizes)], page_token=token))
        assert len(page.tasks) <= sizes[step % len(sizes)] and page.tasks
        ids += [one.id for one in page.tasks]
        totals.add(page.total_size)
        token = page.next_page_token
        if not token:
            return ids, totals
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("sizes", [[100], [1], [7], [3, 50, 1]], ids=str)
@pytest.mark.parametrize("most", [100, 2])
def test_every_task_is_listed_once_newest_first(sizes: list[int], most: int) -> None:
    numbers = list(range(120))
    random.Random(7).shuffle(numbers)
    listers = {"a": Lister(numbers[:70]), "b": Lister(numbers[70:100], most), "c": Lister(numbers[100:])}
    ids, totals = walk(listers, sizes)
    assert ids == [f"t{number}" for number in range(119, -1, -1)]
    assert totals == {120}


def test_a_list_of_nothing_is_one_empty_page() -> None:
    page = read({"a": Lister([]), "b": Lister([])}, ListTasksRequest())
    assert (page.tasks, page.next_page_token, page.page_size, page.total_size) == ((), "", 50, 0)


def test_a_replica_that_is_gone_is_read_no_further() -> None:
    listers = {"a": Lister([1, 3]), "b": Lister([2, 4])}
    first = read(listers, ListTasksRequest(page_size=1))
    del listers["b"]
    second = read(listers, ListTasksRequest(page_size=1, page_token=first.next_page_token))
    third = read(listers, ListTasksRequest(page_size=1, page_token=second.next_page_token))
    assert [one.tasks[0].id for one in (first, second, third)] == ["t4", "t3", "t1"] and not third.next_page_token


@pytest.mark.parametrize(
    "wrong", [{"page_size": 0}, {"page_size": 101}, {"page_token": "x"}, {"page_token": "é"}], ids=str
)
def test_a_size_or_token_that_cannot_be_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParamsError) as raised:
        pages.begin(replace(ListTasksRequest(), **wrong), ("a",))
    assert len(raised.value.violations) == 1


def token(*parts: object) -> str:
    return urlsafe_b64encode(msgspec.json.encode(parts)).decode()


def test_a_token_is_read_back() -> None:
    rests = {"a": pages.Rest("x", 3)}
    of = pages.begin(ListTasksRequest(), ("a",)).filters
    assert pages.begin(ListTasksRequest(page_token=token(50, 7, rests, of)), ("a", "b")).rests == rests


@pytest.mark.parametrize(
    "parts",
    [
        (-1, 0, {"a": ["", 0]}),
        (0, 0, {"a": ["", 0]}),
        (101, 0, {"a": ["", 0]}),
        (10**30, 0, {"a": ["", 0]}),
        (50, -1, {"a": ["", 0]}),
        (50, 2**31, {"a": ["", 0]}),
        (50, 0, {"a": ["", -1]}),
        (50, 0, {"a": ["", 2**31]}),
        (50, 0, {"a": [None, 0]}),
        (50, 0, {}),
        (50, 0, {"another": ["", 0]}),
        (50.5, 0, {"a": ["", 0]}),
        ("50", 0, {"a": ["", 0]}),
    ],
    ids=str,
)
def test_a_token_that_somebody_made_up_is_refused(parts: tuple[object, ...]) -> None:
    of = pages.begin(ListTasksRequest(), ("a",)).filters
    with pytest.raises(InvalidParamsError) as raised:
        pages.begin(ListTasksRequest(page_token=token(*parts, of)), ("a",))
    assert [field for field, _ in raised.value.violations] == ["pageToken"]


@pytest.mark.parametrize(
    "other", [{"context_id": "c"}, {"status": TaskState.WORKING}, {"status_timestamp_after": "2026-01-01T00:00:00Z"}]
)
def test_a_token_is_good_for_its_filters_only(other: dict[str, Any]) -> None:
    listers = {"a": Lister([1, 2]), "b": Lister([3, 4])}
    first = read(listers, ListTasksRequest(page_size=1))
    with pytest.raises(InvalidParamsError):
        pages.begin(replace(ListTasksRequest(page_token=first.next_page_token), **other), tuple(listers))


def test_more_tasks_than_can_be_counted_are_told_as_so_many() -> None:
    page = ListTasksResponse(tasks=(task(1),), next_page_token="", page_size=1, total_size=2**31 - 1)
    request = ListTasksRequest(page_size=1)
    told = pages.merged(request, pages.begin(request, ("a", "b")), {"a": page, "b": page})
    assert told.total_size == 2**31 - 1


def test_a_token_tells_nothing_of_where_the_replicas_are() -> None:
    assert "replica" not in pages.key_of("http://replica.internal:9000")
