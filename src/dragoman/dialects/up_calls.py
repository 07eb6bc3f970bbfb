"""0.3 calls to 1.0: requests and replies of each operation, as trees, dispatched by table.

Rules of this module:

- As in :mod:`.up`: every shape in the field, object by object, in place.
- In the kind shape ``id`` of a push config call is the task's; in the proto shape ``name`` and ``parent`` are resource
  names, ``tasks/{task}/pushNotificationConfigs/{config}``; a bare id is taken for a name.
- 0.3 has no presence for ``historyLength``: 0 is unset. ``blocking`` is the inverse of ``returnImmediately``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import up
from .reading import Unreadable
from .up import Reading

Up = Callable[[Any, Reading], Any]

_CONFIGS = "/pushNotificationConfigs"


def split_name(name: str, field: str = "name") -> tuple[str, str]:
    """Task id and config id of a resource name, the latter empty if there is none. Raises ``Unreadable``."""
    task, _, config = name.removeprefix("tasks/").partition(_CONFIGS)
    config = config.removeprefix("/")
    if "/" in task or "/" in config:
        raise Unreadable((field, f"{name!r:.80} is no resource name"))
    return task, config


def _names(d: dict[str, Any], key: str) -> tuple[str, str] | None:
    name = d.get(key)
    if type(name) is not str:
        return None
    del d[key]
    return split_name(name, key)


def _no_history_limit(d: dict[str, Any]) -> None:
    if d.get("historyLength", 1) == 0 and type(d["historyLength"]) is not bool:
        del d["historyLength"]


def _drop_metadata(d: dict[str, Any], r: Reading) -> None:
    if d.pop("metadata", None):
        r.lose("call-metadata")


# Requests


def _send(d: Any, r: Reading) -> Any:
    if type(d) is not dict:
        return d
    if "request" in d:
        d.setdefault("message", d.pop("request"))
    if "message" in d:
        d["message"] = up.message(d["message"], r)
    config = d.get("configuration")
    if type(config) is dict:
        _configuration(config, r)
        if not config:
            del d["configuration"]
    return d


def _unary_send(d: Any, r: Reading) -> Any:
    d = _send(d, r)
    if type(d) is dict and not r.blocking:
        config = d.get("configuration")
        if config is None:
            d["configuration"] = {"returnImmediately": True}
        elif type(config) is dict and not config.keys() & {"returnImmediately", "blocking"}:
            config["returnImmediately"] = True
    return _settle(d)


def _stream_send(d: Any, r: Reading) -> Any:
    """A stream neither waits nor returns at once: ``blocking`` says nothing there."""
    d = _send(d, r)
    if type(d) is dict and type(d.get("configuration")) is dict:
        d["configuration"].pop("returnImmediately", None)
    return _settle(d)


def _configuration(config: dict[str, Any], r: Reading) -> None:
    _no_history_limit(config)
    for name in ("pushNotificationConfig", "pushNotification"):
        if type(config.get(name)) is dict:
            config.setdefault("taskPushNotificationConfig", push_config(config.pop(name), r))
    blocking = config.get("blocking")
    if blocking is None:
        config.pop("blocking", None)
    elif type(blocking) is bool:
        del config["blocking"]
        config["returnImmediately"] = not blocking


def _settle(d: Any) -> Any:
    """Leave out what is a default in 1.0: waiting, and a configuration that says nothing."""
    config = d.get("configuration") if type(d) is dict else None
    if type(config) is dict:
        if config.get("returnImmediately") is False:
            del config["returnImmediately"]
        if not config:
            del d["configuration"]
    return d


def _task_call(d: Any, r: Reading) -> Any:
    if type(d) is dict:
        names = _names(d, "name")
        if names is not None:
            d["id"] = names[0]
    return d


def _get_task(d: Any, r: Reading) -> Any:
    if type(d) is dict:
        _no_history_limit(d)
        _drop_metadata(d, r)
    return _task_call(d, r)


def _subscribe(d: Any, r: Reading) -> Any:
    if type(d) is dict:
        _drop_metadata(d, r)
    return _task_call(d, r)


def _config_call(d: Any, r: Reading) -> Any:
    """Get and delete: the config id may be missing on get, it then means the first config."""
    if type(d) is not dict:
        return d
    _drop_metadata(d, r)
    names = _names(d, "name")
    if names is not None:
        d["taskId"], d["id"] = names
    elif "taskId" not in d and "id" in d:
        d["taskId"] = d.pop("id")
        d["id"] = d.pop("pushNotificationConfigId", None) or ""
    return d


def _list_configs(d: Any, r: Reading) -> Any:
    if type(d) is not dict:
        return d
    _drop_metadata(d, r)
    names = _names(d, "parent") or _names(d, "name")
    if names is not None:
        d["taskId"] = names[0]
    elif "id" in d:
        d.setdefault("taskId", d.pop("id"))
    return d


def _create_config(d: Any, r: Reading) -> Any:
    """Four bodies in the field: the proto request, its ``config`` alone, the kind shape, the bare config."""
    if type(d) is not dict:
        return d
    _drop_metadata(d, r)
    names = _names(d, "parent")
    task = names[0] if names is not None else d.pop("taskId", None)
    given = d.pop("configId", None)
    wrapped = d.get("config")
    out = task_push_config(wrapped if type(wrapped) is dict else d, r)
    if given:
        out["id"] = given
    if task:
        out["taskId"] = task
    return out


# Webhook configs


def push_config(c: dict[str, Any], r: Reading) -> dict[str, Any]:
    """A flat webhook config: ``schemes`` to the one scheme of 1.0."""
    auth = c.get("authentication")
    if type(auth) is not dict or "schemes" not in auth:
        return c
    schemes = auth.pop("schemes") or []
    if type(schemes) is list and schemes:
        auth.setdefault("scheme", schemes[0])
        if len(schemes) > 1:
            r.lose("push-auth-schemes")
    elif not auth.get("credentials") and not auth.get("scheme"):
        del c["authentication"]
    return c


def task_push_config(c: Any, r: Reading) -> Any:
    """``{taskId, pushNotificationConfig}`` or ``{name, pushNotificationConfig}`` or flat, to flat."""
    if type(c) is not dict:
        return c
    names = _names(c, "name")
    inner = c.pop("pushNotificationConfig", None)
    out = push_config(inner if type(inner) is dict else c, r)
    if out is not c and c.get("taskId"):
        out["taskId"] = c["taskId"]
    if names is not None:
        out.setdefault("taskId", names[0])
        out["id"] = out.get("id") or names[1]
    return out


def _configs(c: Any, r: Reading) -> Any:
    """A bare array, the proto's page, or (one SDK) a single config."""
    if type(c) is list:
        return {"configs": [task_push_config(each, r) for each in c]}
    if type(c) is not dict:
        return c
    if type(c.get("configs")) is list:
        c["configs"] = [task_push_config(each, r) for each in c["configs"]]
    elif c.keys() & {"pushNotificationConfig", "url"}:
        r.forgive("one webhook config where a list belongs")
        return {"configs": [task_push_config(c, r)]}
    return c


def _empty(d: Any, r: Reading) -> Any:
    return {}


#: What turns the tree of a request into that of 1.0, by operation. No row: 0.3 lacks the operation.
REQUESTS: dict[str, Up] = {
    "SendMessage": _unary_send,
    "SendStreamingMessage": _stream_send,
    "GetTask": _get_task,
    "CancelTask": _task_call,
    "SubscribeToTask": _subscribe,
    "CreateTaskPushNotificationConfig": _create_config,
    "GetTaskPushNotificationConfig": _config_call,
    "ListTaskPushNotificationConfigs": _list_configs,
    "DeleteTaskPushNotificationConfig": _config_call,
    "GetExtendedAgentCard": _empty,
}


def _tasks(d: Any, r: Reading) -> Any:
    if type(d) is dict and type(d.get("tasks")) is list:
        d["tasks"] = [up.task(t, r) for t in d["tasks"]]
    return d


#: The same for replies. Cards and empty replies are read elsewhere; ListTasks only in a mixture of both versions.
REPLIES: dict[str, Up] = {
    "SendMessage": up.event,
    "SendStreamingMessage": up.event,
    "GetTask": up.task,
    "ListTasks": _tasks,
    "CancelTask": up.task,
    "SubscribeToTask": up.event,
    "CreateTaskPushNotificationConfig": task_push_config,
    "GetTaskPushNotificationConfig": task_push_config,
    "ListTaskPushNotificationConfigs": _configs,
}
