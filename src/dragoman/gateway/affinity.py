"""Which replica has a task or a context: what requests ask about, and what replies tell.

Rules of this module:

- A task is where it was created. So is a context: what an agent remembers of it is there.
- Only so many are remembered, the ones of last use; what is forgotten can be looked for again.
- Ids are those of a tenant: two tenants may have the same.
- Remembered are keyed hashes of 64 bits, a quarter of the memory that ids take. Two ids with one hash would at worst
  have one of them asked for at the wrong replica, which then does not know it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from ..model import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    SendMessageResponse,
    StreamResponse,
)
from ..service import AnyOperation

REMEMBERED = 50_000


class About(NamedTuple):
    """What a request is about: ids, empty where there is none."""

    task: str = ""
    context: str = ""


#: Operations that are about one task, and the field of their request that names it.
_TASK_FIELD: dict[AnyOperation, str] = {
    GET_TASK: "id",
    CANCEL_TASK: "id",
    SUBSCRIBE_TO_TASK: "id",
    CREATE_PUSH_CONFIG: "task_id",
    GET_PUSH_CONFIG: "task_id",
    LIST_PUSH_CONFIGS: "task_id",
    DELETE_PUSH_CONFIG: "task_id",
}
_SENDS: frozenset[AnyOperation] = frozenset({SEND_MESSAGE, SEND_STREAMING_MESSAGE})
#: Operations whose request says where it belongs.
PLACED: frozenset[AnyOperation] = frozenset({*_TASK_FIELD, *_SENDS})
NOTHING = About()


def about(op: AnyOperation, request: Any) -> About:
    """What a request is about."""
    field = _TASK_FIELD.get(op)
    if field is not None:
        return About(task=getattr(request, field))
    return About(request.message.task_id, request.message.context_id) if op in _SENDS else NOTHING


def told(reply: object) -> About:
    """The task and context that a reply, or an event of a stream, tells of."""
    if isinstance(reply, SendMessageResponse | StreamResponse):
        if reply.task is not None:
            return About(reply.task.id, reply.task.context_id)
        if reply.message is not None:
            return About(reply.message.task_id, reply.message.context_id)
    if isinstance(reply, StreamResponse):
        update = reply.status_update or reply.artifact_update
        if update is not None:
            return About(update.task_id, update.context_id)
    return NOTHING


class Affinity:
    """Replicas by the tasks and contexts that they have. A replica is told by its url. ``most``: how many ids are
    remembered at the most, of which those used last are at least half."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._half = max(most // 2, 1)
        self._lately: dict[int, str] = {}
        self._before: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._lately) + sum(key not in self._lately for key in self._before)

    def task(self, tenant: str, id: str) -> str | None:
        """The replica that has a task, None if that is not known."""
        return self._look("task", tenant, id)

    def context(self, tenant: str, id: str) -> str | None:
        """The replica that has a context."""
        return self._look("context", tenant, id)

    def learn(self, tenant: str, what: About, url: str) -> None:
        """A replica has this."""
        if what.task:
            self._keep(hash(("task", tenant, what.task)), url)
        if what.context:
            self._keep(hash(("context", tenant, what.context)), url)

    def adopt(self, other: Affinity, urls: frozenset[str]) -> None:
        """Know what another one knew of the replicas that there still are."""
        for key, url in chain(other._before.items(), other._lately.items()):
            if url in urls:
                self._keep(key, url)

    def _look(self, kind: str, tenant: str, id: str) -> str | None:
        key = hash((kind, tenant, id))
        url = self._lately.get(key)
        if url is None and (url := self._before.get(key)) is not None:
            self._keep(key, url)
        return url

    def _keep(self, key: int, url: str) -> None:
        self._lately[key] = url
        if len(self._lately) > self._half:
            self._before, self._lately = self._lately, {}
