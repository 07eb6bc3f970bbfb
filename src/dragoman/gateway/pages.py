"""One list of tasks out of the lists of several replicas, page by page (1.0 §3.1.4).

Rules of this module (pure):

- Each replica gives its tasks newest first, so the heads of their pages are compared and the newest is taken.
- The token of the merged list holds, for each replica that is not through, the token of its page and how much of that
  was shown; a page that was shown in part is asked for again, in the size that it had.
- A token comes from a caller: it is good for the filters that it was made with, and within bounds.
- The total is that of all replicas, those that are through included.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Annotated
from zlib import crc32

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..errors import InvalidParamsError
from ..model import ListTasksRequest, ListTasksResponse, Task

DEFAULT_SIZE = 50
MAX_SIZE = 100
_MOST = 2**31 - 1  # tasks that a reply can count

Counted = Annotated[int, Meta(ge=0, le=_MOST)]


class Rest(Struct, array_like=True, frozen=True):
    """What of one replica is still to be shown: from its page ``token`` on, less ``shown`` tasks."""

    token: str = ""
    shown: Counted = 0


class Reading(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """How far a merged list was read. ``size`` of the replicas' pages; ``through``: tasks of replicas that are;
    ``filters``: a sum of those that the list is of."""

    size: Annotated[int, Meta(ge=1, le=MAX_SIZE)]
    through: Counted
    rests: Annotated[dict[str, Rest], Meta(min_length=1)]
    filters: int


def key_of(url: str) -> str:
    """A replica in a token, which a caller sees."""
    return f"{crc32(url.encode()):08x}"


def begin(request: ListTasksRequest, keys: tuple[str, ...]) -> Reading:
    """Where a request starts to read, of the replicas that there are. Raises ``InvalidParamsError``."""
    size = DEFAULT_SIZE if request.page_size is None else request.page_size
    if not 1 <= size <= MAX_SIZE:
        raise InvalidParamsError(violations=(("pageSize", f"must be from 1 to {MAX_SIZE}"),))
    if not request.page_token:
        return Reading(size, 0, {key: Rest() for key in keys}, _filters(request))
    reading = _read(request.page_token)
    rests = {key: rest for key, rest in reading.rests.items() if key in keys} if reading is not None else {}
    if reading is None or not rests or reading.filters != _filters(request):
        told = "is not a token of this list: pass back nextPageToken with the same filters"
        raise InvalidParamsError(violations=(("pageToken", told),))
    return replace(reading, rests=rests)


def _read(token: str) -> Reading | None:
    try:
        return msgspec.json.decode(b64decode(token.encode("ascii"), b"-_", validate=True), type=Reading)
    except (ValueError, RecursionError):
        return None


def _filters(request: ListTasksRequest) -> int:
    """What two requests for pages of one list have in common."""
    filters = (request.tenant, request.context_id, request.status.value, request.status_timestamp_after)
    return crc32(msgspec.json.encode(filters))


def asking(request: ListTasksRequest, reading: Reading, key: str) -> ListTasksRequest:
    """What to ask a replica for."""
    return replace(request, page_token=reading.rests[key].token, page_size=reading.size)


def merged(request: ListTasksRequest, reading: Reading, pages: Mapping[str, ListTasksResponse]) -> ListTasksResponse:
    """The page to show, of those that the replicas gave."""
    size = DEFAULT_SIZE if request.page_size is None else request.page_size
    places = {key: reading.rests[key].shown for key in pages}
    shown: list[Task] = []
    while len(shown) < size:
        heads = {key: pages[key].tasks[place] for key, place in places.items() if place < len(pages[key].tasks)}
        ended = any(places[key] >= len(page.tasks) and page.next_page_token for key, page in pages.items())
        if not heads or (ended and shown):
            break  # what a replica's next page begins with may be newer than the heads of the others
        newest = max(heads, key=lambda key: heads[key].status.timestamp or "")
        shown.append(heads[newest])
        places[newest] += 1
    return _reply(reading, pages, places, tuple(shown), size)


def _reply(
    reading: Reading,
    pages: Mapping[str, ListTasksResponse],
    places: Mapping[str, int],
    shown: tuple[Task, ...],
    size: int,
) -> ListTasksResponse:
    rests: dict[str, Rest] = {}
    through = reading.through
    for key, page in pages.items():
        if places[key] < len(page.tasks):
            rests[key] = Rest(reading.rests[key].token, places[key])
        elif page.next_page_token:
            rests[key] = Rest(page.next_page_token)
        else:
            through += page.total_size
    rest = replace(reading, through=min(through, _MOST), rests=rests)
    token = urlsafe_b64encode(msgspec.json.encode(rest)).decode() if rests else ""
    total = min(reading.through + sum(page.total_size for page in pages.values()), _MOST)
    return ListTasksResponse(tasks=shown, next_page_token=token, page_size=size, total_size=total)
