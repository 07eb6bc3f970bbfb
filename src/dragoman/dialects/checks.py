"""What types cannot say: the rules that a request and a reply must keep, checked on canonical structs.

Rules of this module:

- A request breaks a rule: ``InvalidParamsError`` with a violation per broken rule, fields in camelCase with dots.
- A reply breaks a rule: ``PeerError``, but only where it cannot be understood; an odd reply is not our caller's fault.
- Timestamps leave here canonical. A value that needs no change is returned as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from .. import model
from ..model import Message, Part, Task, TaskStatus, canonical_time
from .base import Notes
from .reading import Unreadable, Violation

_Rules = Callable[[Any], Iterable[Violation]]

_ZONED = re.compile(r"(?:[Zz]|[+-]\d\d:?\d\d)\s*$")
_EMPTY = "must not be empty"
_ONE_MEMBER = "needs exactly one of text, raw, url, data"
MAX_PAGE = 100
_NOBODY = model.Role.UNSPECIFIED


def whole(parts: tuple[Part, ...]) -> bool:
    """Whether every part has exactly one member. Runs over each part of each message: text goes the short way."""
    for part in parts:
        if part.text is not UNSET:
            if part.raw is not UNSET or part.url is not UNSET or part.data is not UNSET:
                return False
        elif _members(part) != 1:
            return False
    return True


def _members(part: Part) -> int:
    return (part.text is not UNSET) + (part.raw is not UNSET) + (part.url is not UNSET) + (part.data is not UNSET)


# Requests


def request(op: str, value: Any) -> Any:
    """Check a request and return it, its timestamps canonical. Raises ``Unreadable`` with every broken rule."""
    rules = _RULES.get(op)
    broken = rules(value) if rules else ()
    if broken and (found := tuple(broken)):
        raise Unreadable(*found)
    if type(value) is model.ListTasksRequest and value.status_timestamp_after is not None:
        return msgspec.structs.replace(value, status_timestamp_after=canonical_time(value.status_timestamp_after))
    return value


def _message(message: Message, at: str) -> Iterator[Violation]:
    if not message.message_id:
        yield f"{at}.messageId", _EMPTY
    if message.role is _NOBODY:
        yield f"{at}.role", "must be ROLE_USER or ROLE_AGENT"
    if not message.parts:
        yield f"{at}.parts", "needs at least one part"
    if not whole(message.parts):
        for index, part in enumerate(message.parts):
            if _members(part) != 1:
                yield f"{at}.parts[{index}]", _ONE_MEMBER


def _send(value: model.SendMessageRequest) -> Iterable[Violation]:
    message = value.message
    fine = message.message_id and message.role is not _NOBODY and message.parts and whole(message.parts)
    return () if fine and _plain(value.configuration) else _send_violations(value)


def _plain(config: model.SendMessageConfiguration | None) -> bool:
    """Whether a configuration has nothing in it that could break a rule."""
    return config is None or (config.history_length is None and config.task_push_notification_config is None)


def _send_violations(value: model.SendMessageRequest) -> Iterator[Violation]:
    yield from _message(value.message, "message")
    config = value.configuration
    if config is not None:
        yield from _history(config.history_length, "configuration.historyLength")
        if config.task_push_notification_config is not None:
            yield from _webhook(config.task_push_notification_config, "configuration.taskPushNotificationConfig.")


def _history(length: int | None, at: str = "historyLength") -> Iterator[Violation]:
    if length is not None and length < 0:
        yield at, "must not be negative"


def _webhook(config: model.TaskPushNotificationConfig, at: str = "") -> Iterator[Violation]:
    scheme, mark, host = config.url.partition("://")
    if not config.url:
        yield f"{at}url", _EMPTY
    elif not (mark and host and scheme.lower() in ("http", "https")):
        yield f"{at}url", "must be an http or https URL"
    if config.authentication is not None and not config.authentication.scheme:
        yield f"{at}authentication.scheme", _EMPTY


def _filled(*fields: tuple[str, str]) -> _Rules:
    def rules(value: Any) -> Iterator[Violation]:
        for attribute, name in fields:
            if not getattr(value, attribute):
                yield name, _EMPTY

    return rules


_HAS_ID = _filled(("id", "id"))
_HAS_TASK = _filled(("task_id", "taskId"))
_HAS_BOTH = _filled(("task_id", "taskId"), ("id", "id"))


def _get_task(value: model.GetTaskRequest) -> Iterable[Violation]:
    return () if value.id and value.history_length is None else _get_violations(value)


def _get_violations(value: model.GetTaskRequest) -> Iterator[Violation]:
    yield from _HAS_ID(value)
    yield from _history(value.history_length)


def _list_tasks(value: model.ListTasksRequest) -> Iterator[Violation]:
    if value.page_size is not None and not 1 <= value.page_size <= MAX_PAGE:
        yield "pageSize", f"must be 1 to {MAX_PAGE}"
    yield from _history(value.history_length)
    if value.status_timestamp_after is not None:
        try:
            canonical_time(value.status_timestamp_after)
        except (ValueError, OverflowError):
            yield "statusTimestampAfter", "is no RFC 3339 timestamp"


def _create_config(value: model.TaskPushNotificationConfig) -> Iterator[Violation]:
    yield from _HAS_TASK(value)
    yield from _webhook(value)


def _list_configs(value: model.ListTaskPushNotificationConfigsRequest) -> Iterator[Violation]:
    yield from _HAS_TASK(value)
    if value.page_size < 0:
        yield "pageSize", "must not be negative"


_RULES: dict[str, _Rules] = {
    "SendMessage": _send,
    "SendStreamingMessage": _send,
    "GetTask": _get_task,
    "ListTasks": _list_tasks,
    "CancelTask": _HAS_ID,
    "SubscribeToTask": _HAS_ID,
    "CreateTaskPushNotificationConfig": _create_config,
    "GetTaskPushNotificationConfig": _HAS_BOTH,
    "ListTaskPushNotificationConfigs": _list_configs,
    "DeleteTaskPushNotificationConfig": _HAS_BOTH,
}


# Replies


def reply(value: Any, notes: Notes | None) -> Any:
    """Check a reply and return it, its timestamps canonical. Raises ``Unreadable`` if it has no one meaning."""
    check = _REPLIES.get(type(value))
    return value if check is None else check(value, notes)


def _blame(parts: tuple[Part, ...], at: str) -> NoReturn:
    raise Unreadable(*((f"{at}parts[{i}]", _ONE_MEMBER) for i, part in enumerate(parts) if _members(part) != 1))


def _status(status: TaskStatus, notes: Notes | None) -> TaskStatus:
    if status.message is not None and not whole(status.message.parts):
        _blame(status.message.parts, "status.message.")
    time = status.timestamp
    if time is None or (len(time) == 24 and time[23] == "Z" and time[19] == "."):
        return status
    try:
        canonical = canonical_time(time)
    except (ValueError, OverflowError):
        if notes is not None:
            notes.lost.append("unreadable-timestamp")
        return msgspec.structs.replace(status, timestamp=None)
    if notes is not None and not _ZONED.search(time):
        notes.forgiven.append("a time without a zone taken as UTC")
    return msgspec.structs.replace(status, timestamp=canonical)


def _with_status(value: Any, notes: Notes | None) -> Any:
    status = _status(value.status, notes)
    return value if status is value.status else msgspec.structs.replace(value, status=status)


def _task(task: Task, notes: Notes | None) -> Task:
    for index, artifact in enumerate(task.artifacts):
        if not whole(artifact.parts):
            _blame(artifact.parts, f"artifacts[{index}].")
    for index, message in enumerate(task.history):
        if not whole(message.parts):
            _blame(message.parts, f"history[{index}].")
    checked: Task = _with_status(task, notes)
    return checked


def _tasks(page: model.ListTasksResponse, notes: Notes | None) -> model.ListTasksResponse:
    tasks = tuple([_task(task, notes) for task in page.tasks])
    if all(map(is_, tasks, page.tasks)):
        return page
    return msgspec.structs.replace(page, tasks=tasks)


def _direct(message: Message, notes: Notes | None) -> Message:
    if not whole(message.parts):
        _blame(message.parts, "message.")
    return message


def _artifact_update(event: model.TaskArtifactUpdateEvent, notes: Notes | None) -> model.TaskArtifactUpdateEvent:
    if not whole(event.artifact.parts):
        _blame(event.artifact.parts, "artifact.")
    return event


def _one_of(*members: tuple[str, Callable[[Any, Notes | None], Any]]) -> Callable[[Any, Notes | None], Any]:
    names = ", ".join(name for name, _ in members)

    def check(value: Any, notes: Notes | None) -> Any:
        found = [(name, item, rule) for name, rule in members if (item := getattr(value, name)) is not None]
        if len(found) != 1:
            raise Unreadable(("", f"needs exactly one of {names}"))
        name, item, rule = found[0]
        checked = rule(item, notes)
        return value if checked is item else msgspec.structs.replace(value, **{name: checked})

    return check


_REPLIES: dict[type[Any], Callable[[Any, Notes | None], Any]] = {
    Task: _task,
    model.ListTasksResponse: _tasks,
    model.SendMessageResponse: _one_of(("task", _task), ("message", _direct)),
    model.StreamResponse: _one_of(
        ("task", _task),
        ("message", _direct),
        ("status_update", _with_status),
        ("artifact_update", _artifact_update),
    ),
}
