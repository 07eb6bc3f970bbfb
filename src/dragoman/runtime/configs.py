"""Webhook configs of tasks: the four operations, and the config that comes inside a send (1.0 §3.1.7 to §3.1.10).

Rules of this module:

- Who may not see a task may not see, make or delete its configs; the caller checks that first.
- The server gives a config its id if it has none, and always fills in its task (0.3 had peers that did neither).
- Creating under an id that exists replaces. Deleting what does not exist succeeds.
- A task has so many and no more. A config is kept with the version that it was registered in.
- Configs are only kept here; :mod:`.push` delivers.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ..errors import InvalidParamsError, TaskNotFoundError
from ..model import (
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
)
from ..protocol.operations import Version
from ..store.base import Owner, Store, Webhook
from .stamps import new_id

MAX_PAGE = 100
#: Webhooks of one task.
MAX_CONFIGS = 32


def complete(config: TaskPushNotificationConfig, task_id: str) -> TaskPushNotificationConfig:
    """The config for a task, with its ids. Raises ``InvalidParamsError`` if it is for another task or has no url."""
    if config.task_id not in ("", task_id):
        raise InvalidParamsError(violations=(("taskId", "names another task"),))
    if not config.url.startswith(("https://", "http://")):
        raise InvalidParamsError(violations=(("url", "must be an http or https URL"),))
    return replace(config, id=config.id or new_id(), task_id=task_id)


async def inline(
    store: Store, owner: Owner, task_id: str, config: TaskPushNotificationConfig, version: Version
) -> Webhook:
    """The webhook of a send to an existing task: one that repeats a stored config is that one."""
    for known in await store.configs(owner, task_id):
        if repeats(config, known.config):
            return known
    return Webhook(complete(config, task_id), version)


def repeats(config: TaskPushNotificationConfig, known: TaskPushNotificationConfig) -> bool:
    """Whether a config without an id is one that is known already."""
    return not config.id and replace(known, id="", task_id=config.task_id, tenant=config.tenant) == config


async def keep(store: Store, owner: Owner, webhook: Webhook) -> None:
    """Store a webhook. Raises ``InvalidParamsError`` if its task has as many others as it may have."""
    known = await store.configs(owner, webhook.config.task_id)
    if len(known) >= MAX_CONFIGS and all(other.config.id != webhook.config.id for other in known):
        raise InvalidParamsError(violations=(("taskId", f"has {MAX_CONFIGS} webhooks, and may not have more"),))
    await store.save_config(owner, webhook)


async def get(store: Store, owner: Owner, task_id: str, config_id: str) -> TaskPushNotificationConfig:
    """The config of this id, or the first one if the id is empty (0.3). Raises ``TaskNotFoundError`` if none is."""
    return chosen([one.config for one in await store.configs(owner, task_id)], task_id, config_id)


def chosen(known: Iterable[TaskPushNotificationConfig], task_id: str, config_id: str) -> TaskPushNotificationConfig:
    """As :func:`get`, of those that are known."""
    for config in known:
        if config_id in ("", config.id):
            return config
    raise TaskNotFoundError(
        "The task has no such push notification config", metadata={"taskId": task_id, "configId": config_id}
    )


async def page(
    store: Store, owner: Owner, request: ListTaskPushNotificationConfigsRequest
) -> ListTaskPushNotificationConfigsResponse:
    """The configs of a task in the order of their ids; all of them unless a page size is asked for."""
    return paged([one.config for one in await store.configs(owner, request.task_id)], request)


def paged(
    several: Iterable[TaskPushNotificationConfig], request: ListTaskPushNotificationConfigsRequest
) -> ListTaskPushNotificationConfigsResponse:
    """As :func:`page`, of those that are known."""
    if not 0 <= request.page_size <= MAX_PAGE:
        raise InvalidParamsError(violations=(("pageSize", f"must be from 1 to {MAX_PAGE}"),))
    known = sorted(several, key=lambda config: config.id)
    rest = [config for config in known if config.id > request.page_token]
    size = request.page_size or len(rest)
    token = rest[size - 1].id if len(rest) > size else ""
    return ListTaskPushNotificationConfigsResponse(configs=tuple(rest[:size]), next_page_token=token)
