"""1.0 calls to 0.3: requests and replies of each operation, from structs to trees, dispatched by table.

Rules of this module:

- What 0.3 cannot say is noted by its name in the loss table, or refused when leaving it out would change the meaning.
- ``blocking`` is always written: peers disagree on what its absence means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import model
from ..errors import InvalidParamsError
from . import down
from .down import Tree, Writing

Down = Callable[[Any, Writing], Any]


def task_name(task: str, field: str = "id") -> str:
    """``tasks/{task}``. Raises ``InvalidParamsError`` for an id that would break the name."""
    if "/" in task:
        raise InvalidParamsError("0.3 cannot name an id with a slash", violations=((field, "must not contain /"),))
    return f"tasks/{task}"


def config_name(task: str, config: str) -> str:
    """``tasks/{task}/pushNotificationConfigs/{config}``, without the last step while the config has no id."""
    if "/" in config:
        raise InvalidParamsError("0.3 cannot name an id with a slash", violations=(("id", "must not contain /"),))
    name = f"{task_name(task, 'taskId')}/pushNotificationConfigs"
    return f"{name}/{config}" if config else name


def _tenant(value: Any, w: Writing) -> None:
    if value.tenant:
        w.lose("tenant")


# Requests


def _send(value: model.SendMessageRequest, w: Writing) -> Tree:
    _tenant(value, w)
    out: Tree = {
        "message": down.message(value.message, w),
        "configuration": _configuration(value.configuration, w),
    }
    if value.metadata is not None:
        out["metadata"] = value.metadata
    return out


def _stream_send(value: model.SendMessageRequest, w: Writing) -> Tree:
    if value.configuration is not None and value.configuration.return_immediately:
        w.lose("stream-return-immediately")
    return _send(value, w)


_WAIT = model.SendMessageConfiguration()


def _configuration(config: model.SendMessageConfiguration | None, w: Writing) -> Tree:
    if config is None:
        return {"blocking": True}
    if config == _WAIT:
        w.lose("empty-configuration")
    out: Tree = {"blocking": not config.return_immediately}
    if config.accepted_output_modes:
        out["acceptedOutputModes"] = config.accepted_output_modes
    if config.task_push_notification_config is not None:
        name = "pushNotificationConfig" if w.kind else "pushNotification"
        out[name] = _push_config(config.task_push_notification_config, w)
    _history(config.history_length, out, w)
    return out


def _history(length: int | None, out: Tree, w: Writing) -> None:
    if length == 0:
        w.lose("history-length-zero")
    elif length is not None:
        out["historyLength"] = length


def _task_call(value: Any, w: Writing) -> Tree:
    _tenant(value, w)
    return {"id": value.id} if w.kind else {"name": task_name(value.id)}


def _get_task(value: model.GetTaskRequest, w: Writing) -> Tree:
    out = _task_call(value, w)
    _history(value.history_length, out, w)
    return out


def _cancel(value: model.CancelTaskRequest, w: Writing) -> Tree:
    out = _task_call(value, w)
    if value.metadata is not None:
        if w.kind:
            out["metadata"] = value.metadata
        else:
            w.lose("cancel-metadata")
    return out


def _config_call(value: Any, w: Writing) -> Tree:
    _tenant(value, w)
    if not w.kind:
        return {"name": config_name(value.task_id, value.id)}
    out = {"id": value.task_id}
    if value.id:
        out["pushNotificationConfigId"] = value.id
    return out


def _list_configs(value: model.ListTaskPushNotificationConfigsRequest, w: Writing) -> Tree:
    _tenant(value, w)
    if w.kind:
        if value.page_size or value.page_token:
            w.lose("push-paging")
        return {"id": value.task_id}
    out: Tree = {"parent": task_name(value.task_id, "taskId")}
    if value.page_size:
        out["pageSize"] = value.page_size
    if value.page_token:
        out["pageToken"] = value.page_token
    return out


def _create_config(value: model.TaskPushNotificationConfig, w: Writing) -> Tree:
    if w.kind:
        return _task_push_config(value, w)
    out: Tree = {"parent": task_name(value.task_id, "taskId")}
    if w.bare_configs:
        return out | _task_push_config(value, w)
    if value.id:
        out["configId"] = value.id
    out["config"] = _task_push_config(value, w)
    return out


def _nothing(value: Any, w: Writing) -> Tree:
    _tenant(value, w)
    return {}


#: What turns a request into its tree, by operation. No row: 0.3 lacks the operation.
REQUESTS: dict[str, Down] = {
    "SendMessage": _send,
    "SendStreamingMessage": _stream_send,
    "GetTask": _get_task,
    "CancelTask": _cancel,
    "SubscribeToTask": _task_call,
    "CreateTaskPushNotificationConfig": _create_config,
    "GetTaskPushNotificationConfig": _config_call,
    "ListTaskPushNotificationConfigs": _list_configs,
    "DeleteTaskPushNotificationConfig": _config_call,
    "GetExtendedAgentCard": _nothing,
}


# Webhook configs and replies


def _push_config(c: model.TaskPushNotificationConfig, w: Writing) -> Tree:
    _tenant(c, w)
    out: Tree = {"id": c.id} if c.id else {}
    out["url"] = c.url
    if c.token:
        out["token"] = c.token
    if c.authentication is not None:
        auth: Tree = {"schemes": [c.authentication.scheme]}
        if c.authentication.credentials:
            auth["credentials"] = c.authentication.credentials
        out["authentication"] = auth
    return out


def _task_push_config(c: model.TaskPushNotificationConfig, w: Writing) -> Tree:
    key = {"taskId": c.task_id} if w.kind else {"name": config_name(c.task_id, c.id)}
    return {**key, "pushNotificationConfig": _push_config(c, w)}


def _configs(page: model.ListTaskPushNotificationConfigsResponse, w: Writing) -> Any:
    configs = [_task_push_config(c, w) for c in page.configs]
    if w.kind:
        if page.next_page_token:
            w.lose("push-paging")
        return configs
    return {"configs": configs, "nextPageToken": page.next_page_token} if page.next_page_token else {"configs": configs}


def _empty(value: None, w: Writing) -> Any:
    return None if w.kind else {}


#: The same for replies; the card has a module of its own.
REPLIES: dict[str, Down] = {
    "SendMessage": down.event,
    "SendStreamingMessage": down.event,
    "GetTask": down.task,
    "CancelTask": down.task,
    "SubscribeToTask": down.event,
    "CreateTaskPushNotificationConfig": _task_push_config,
    "GetTaskPushNotificationConfig": _task_push_config,
    "ListTaskPushNotificationConfigs": _configs,
    "DeleteTaskPushNotificationConfig": _empty,
}
