"""Webhooks of callers at one agent: whose they are, and the callbacks of our own that feed them.

Rules of this module:

- A caller sees, replaces and removes its own webhooks only: those of its name, at its tenant.
- One callback per task and caller is registered with the agent, however many webhooks the caller has for the task.
- A webhook of a known task has an id that follows from whose it is, which task it is of and its own name: one that is
  registered twice at once, here or at two gateways, is one. Here, only one at a time is registered for a task.
- What is kept here before the agent was asked is taken back when the agent refuses; when nobody knows what the agent
  did, it stays until it is clear that nothing comes.
- Callers whom nobody can tell apart are told the token of a webhook, as agents tell whoever knows the task, but not its
  credentials: they might be another's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ...errors import InvalidParamsError
from ...model import Task, TaskPushNotificationConfig
from ...protocol.operations import Version
from ...runtime.configs import MAX_CONFIGS, repeats
from ...runtime.lifecycle import is_terminal
from ...runtime.notice import Forms
from ...runtime.stamps import new_id
from ...runtime.webhooks import admit
from ...service import Context
from ...store.outbox import Change, Decide, Registration, Scope, State, Watch
from ..emulation.aliases import is_own
from ..snapshots import merged
from .reading import Secrets, digest, new_secrets
from .relay import Relay
from .telling import whole_task

_PATIENCE = 2.0  # seconds to look up the host of a new webhook


class Webhooks:
    """The webhooks at the agent ``name``. ``caller_of``: see ``identity.owner_of``."""

    def __init__(self, relay: Relay, name: str, caller_of: Callable[[Context], str]) -> None:
        self.relay = relay
        self._name = name
        self._caller_of = caller_of
        self._turns: WeakValueDictionary[tuple[Scope, str], asyncio.Lock] = WeakValueDictionary()

    def turn(self, scope: Scope, task_id: str) -> asyncio.Lock:
        """What is held while a webhook is registered for a task."""
        key = scope, task_id
        found = self._turns.get(key)
        if found is None:
            found = self._turns[key] = asyncio.Lock()
        return found

    def scope(self, request: Any, ctx: Context) -> Scope:
        """Whose webhooks a request is about."""
        return Scope(self._name, request.tenant or ctx.tenant, self._caller_of(ctx))

    async def admit(self, config: TaskPushNotificationConfig) -> None:
        """Judge a new webhook. Raises ``InvalidParamsError``."""
        await admit(config, self.relay.guard, _PATIENCE)

    async def of(self, scope: Scope, task_id: str) -> tuple[State, ...]:
        """The caller's callbacks for a task, with its webhooks."""
        return await self.relay.outbox.find(scope, task_id)

    async def open(
        self, scope: Scope, task_id: str, config: TaskPushNotificationConfig, version: Version
    ) -> tuple[Watch, Secrets]:
        """A new callback for a task, whose id may not be known yet, and its first webhook."""
        made, now = new_secrets(), time.time()
        watch = Watch(
            id=new_id(),
            scope=scope,
            reference=digest(made.reference),
            secret=digest(made.token),
            task_id=task_id,
            created=now,
        )
        id = _id(scope, task_id, config)
        one = Registration(id=id, watch_id=watch.id, config=config, version=version, created=now)
        await self.relay.outbox.open(watch, one)
        return watch, made

    async def join(
        self, states: tuple[State, ...], config: TaskPushNotificationConfig, version: Version
    ) -> Registration | None:
        """Put a webhook under a callback that is there, in place of the one of its id. None if there is none that
        something will still come from. Raises ``InvalidParamsError`` if the task has as many as it may have."""
        lines = [line for state in states for line in state.lines]
        known = next((line.registration for line in lines if line.registration.config.id == config.id), None)
        if known is None and len(lines) >= MAX_CONFIGS:
            raise InvalidParamsError(violations=(("taskId", f"has {MAX_CONFIGS} webhooks, and may not have more"),))
        live = [state.watch.id for state in states if not state.watch.ended]
        if known is None and not live:
            return None
        one = (
            Registration(
                id=_id(states[0].watch.scope, states[0].watch.task_id, config),
                watch_id=live[0],
                config=config,
                version=version,
                created=time.time(),
            )
            if known is None
            else replace(known, config=config, version=version)
        )
        change = await self.relay.outbox.change(one.watch_id, joined(one, self.relay.forms))
        self.relay.stir()
        return one if change is not None else None

    async def leave(self, one: Registration) -> None:
        """Deliver nothing more to a webhook."""
        await self.relay.outbox.change(one.watch_id, lambda state: Change(drop=(one.id,)))

    async def forget(self, watch_id: str) -> None:
        """Remove a callback with its webhooks."""
        await self.relay.outbox.change(watch_id, lambda state: Change(gone=True))

    async def refused(self, watch_id: str) -> None:
        """The agent would not have what a callback was made for."""
        await self.relay.outbox.change(watch_id, lambda state: None if state.watch.recent else Change(gone=True))

    async def bind(self, watch_id: str, task: Task) -> None:
        """The reply to a send says which task a callback is for, and how that is."""
        await self.relay.outbox.change(watch_id, bound(task))

    async def look(self, watch_id: str, task: Task) -> None:
        """A task as the agent showed it after a webhook was registered for it: the end may have come before."""
        await self.relay.outbox.change(watch_id, looked(task, self.relay.forms))
        self.relay.stir()


def _id(scope: Scope, task_id: str, config: TaskPushNotificationConfig) -> str:
    """The id of a webhook; any, as long as nobody knows which task it is of."""
    return digest("\0".join((*scope, task_id, config.id)))[:32] if task_id else new_id()


def shown(config: TaskPushNotificationConfig, task_id: str, scope: Scope) -> TaskPushNotificationConfig:
    """A webhook as its owner sees it."""
    given = config.authentication
    if given is not None and not scope.owner:
        given = replace(given, credentials="")
    return replace(config, task_id=task_id, authentication=given)


def repeated(states: tuple[State, ...], config: TaskPushNotificationConfig) -> bool:
    """Whether a webhook without an id is one of those that are known."""
    return any(repeats(config, line.registration.config) for state in states for line in state.lines)


# -- decisions


def joined(one: Registration, forms: Forms) -> Decide:
    """A webhook is added or replaced. One that was replaced by one of another version gets what waits as the whole
    task, since it is written for the other; so does one that comes after the end."""

    def decide(state: State) -> Change:
        task, before = state.watch.snapshot, {line.registration.id: line for line in state.lines}
        line = before.get(one.id)
        rewritten = line is not None and line.waiting and line.registration.version != one.version
        late = line is None and state.watch.ended
        tell = (whole_task(task, one, forms),) if task is not None and (rewritten or late) else ()
        return Change(put=(one,), tell=tell)

    return decide


def bound(task: Task) -> Decide:
    """A task that a reply named is that of the callback. How it is there is how it began, if nothing was done yet;
    else it is only known at the end, for its notifications are on their way."""

    def decide(state: State) -> Change | None:
        watch = state.watch
        if not watch.task_id or is_own(task.id):
            peer = watch.task_id if watch.task_id != task.id else ""
            watch = replace(watch, task_id=task.id, peer_id=peer or watch.peer_id)
        if watch.ended or watch.snapshot is not None:
            pass
        elif task.artifacts or is_terminal(task.status.state):
            watch = replace(watch, reply=task)
        else:
            watch = replace(watch, snapshot=task)
        return None if watch is state.watch else Change(watch=watch)

    return decide


def looked(task: Task, forms: Forms) -> Decide:
    """A task was looked at."""

    def decide(state: State) -> Change | None:
        watch = state.watch
        if watch.ended:
            return None
        now = task if watch.snapshot is None else merged(watch.snapshot, task)
        ended = is_terminal(now.status.state)
        tell = tuple(whole_task(now, line.registration, forms, "behind") for line in state.lines) if ended else ()
        return Change(watch=replace(watch, snapshot=now, ended=ended), tell=tell)

    return decide
