"""From a ListTasks request to a query of the store, and from a page of tasks to the reply (1.0 §3.1.4).

Rules of this module:

- A page token holds where the last page ended and a checksum of everything that chose its tasks: the owner and the
  filters. With other filters, or from somebody else, it is refused. The server keeps nothing between pages.
- Everything that is wrong with a request is told at once, each under the name of its field.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from zlib import crc32

from msgspec.structs import replace

from ..errors import InvalidParamsError
from ..model import ListTasksRequest, ListTasksResponse, Task, TaskState, canonical_time
from ..store.base import Cursor, Owner, TaskPage, TaskQuery
from .lifecycle import trim

DEFAULT_PAGE = 50
MAX_PAGE = 100


def read_query(request: ListTasksRequest, owner: Owner) -> TaskQuery:
    """The query that the request asks for. Raises ``InvalidParamsError`` that names each bad field."""
    wrong: list[tuple[str, str]] = []
    size = DEFAULT_PAGE if request.page_size is None else request.page_size
    if not 1 <= size <= MAX_PAGE:
        wrong.append(("pageSize", f"must be from 1 to {MAX_PAGE}"))
    if request.history_length is not None and request.history_length < 0:
        wrong.append(("historyLength", "must not be negative"))
    since = _read_time(request.status_timestamp_after, wrong)
    after = _read_token(request.page_token, _checksum(request, owner, since), wrong)
    if wrong:
        raise InvalidParamsError(violations=tuple(wrong))
    state = None if request.status is TaskState.UNSPECIFIED else request.status
    return TaskQuery(context_id=request.context_id, state=state, since=since, after=after, limit=size)


def write_page(request: ListTasksRequest, owner: Owner, query: TaskQuery, page: TaskPage) -> ListTasksResponse:
    """The reply for a page."""
    token = _write_token(page.tasks[-1], _checksum(request, owner, query.since)) if page.more and page.tasks else ""
    return ListTasksResponse(
        tasks=tuple(_listed(task, request) for task in page.tasks),
        next_page_token=token,
        page_size=query.limit,
        total_size=page.total,
    )


def _listed(task: Task, request: ListTasksRequest) -> Task:
    if task.artifacts and not request.include_artifacts:
        task = replace(task, artifacts=())
    return trim(task, request.history_length)


def _read_time(text: str | None, wrong: list[tuple[str, str]]) -> str:
    try:
        return canonical_time(text) if text else ""
    except ValueError:
        wrong.append(("statusTimestampAfter", "must be an RFC 3339 timestamp"))
        return ""


def _checksum(request: ListTasksRequest, owner: Owner, since: str) -> str:
    return f"{crc32(repr((owner, request.context_id, request.status.value, since)).encode()):08x}"


def _write_token(last: Task, checksum: str) -> str:
    return urlsafe_b64encode(f"{checksum}{last.status.timestamp or ''}|{last.id}".encode()).decode()


def _read_token(token: str, checksum: str, wrong: list[tuple[str, str]]) -> Cursor | None:
    if not token:
        return None
    try:
        text = urlsafe_b64decode(token.encode("ascii")).decode()
    except ValueError:
        text = ""
    timestamp, bar, task_id = text[8:].partition("|")
    if text[:8] != checksum or not bar:
        wrong.append(("pageToken", "is not a token of this list: pass back nextPageToken with the same filters"))
        return None
    return Cursor(timestamp, task_id)
