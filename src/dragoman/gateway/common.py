"""What all agents of one gateway share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ..model import Task
from ..store.base import Store
from ..store.memory import MemoryStore
from ..store.outbox import Watch
from .admission import Admission
from .background import Background
from .config import Config, Observe, Server
from .identity import is_digest
from .index import Index
from .keeping import Keeping, open_keeping
from .owners import Owners, context_key, task_key
from .relay.relay import Relay, is_known_outside
from .seen import Seen
from .telemetry.readiness import Check
from .telemetry.telemetry import Telemetry, telemetry_of
from .verifying import admission_of

Tell = Callable[[str], None]


def quiet(said: str) -> None:
    """Nobody listens."""


@dataclass(slots=True, kw_only=True)
class Common:
    """The gateway's own parts, None where the configuration wants none.

    ``tell`` hears, in words, what was decided for the operator. ``tasks``: where seen tasks and ids of our own are
    kept. ``index``: the tasks that were seen. ``owners``: whose ids of agents are. ``placed``: somebody said where they
    are kept.
    ``background``: what goes on without its caller. ``keeping``: what is kept of that for good, and ``relay``: who
    serves webhooks, both from :meth:`open` on. ``admission``: who may call. ``telemetry``: who looks on. ``checks``:
    what has to answer, besides agents, for the gateway to be ready.
    """

    server: Server = field(default_factory=Server)
    tell: Tell = quiet
    tasks: Store = field(default_factory=MemoryStore)
    index: Index | None = None
    owners: Owners = field(default_factory=Owners)
    placed: bool = False
    background: Background = field(default_factory=Background)
    keeping: Keeping | None = None
    relay: Relay | None = None
    admission: Admission | None = None
    checks: dict[str, Check] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=lambda: Telemetry(Observe()))

    def keep_tasks(self, store: Store, *, days: float) -> None:
        """Keep tasks there, and list them for so many days after their last change. Before any agent is reached."""
        self.tasks, self.index, self.placed = store, Index(Seen(store), days=days), True

    async def open(self, config: Config) -> None:
        """Open what is kept, and begin to deliver to webhooks. Before any agent is reached, and once.

        Raises ``ConfigError``, ``UnavailableError``.
        """
        self.keeping = keeping = await open_keeping(config.store, config.server.port, self.tell)
        if not self.placed:
            self.keep_tasks(keeping.tasks, days=config.store.task_days)
        self.owners = Owners(keeping.owners)
        relay = self.relay = Relay(keeping.outbox, config.relay, config.server, self.background)
        relay.told.append(self._see)
        if not is_known_outside(config.relay, config.server):
            self.tell(
                f"agents are told to post notifications to {relay.callbacks}: set relay.callback_url or public_url"
            )
        self.checks["store"] = partial(keeping.database.fetch, "SELECT 1")
        try:
            await relay.start()
        except BaseException:
            await self.aclose()
            raise

    def _see(self, watch: Watch, task: Task) -> None:
        """A task that a notification told of."""
        if self.index is not None:
            self.index.see(*watch.scope, task)
        if watch.scope.agent in self.owners.isolated:
            self.background.start(self._learn(watch, task), "owner")

    async def _learn(self, watch: Watch, task: Task) -> None:
        """Whoever has a webhook for a task may hear its ids from there first."""
        upstream, tenant, owner = watch.scope
        owner = "" if is_digest(owner) else owner
        if await self.owners.claim(task_key(upstream, tenant, task.id), owner) and task.context_id:
            await self.owners.claim(context_key(upstream, task.context_id), owner)

    async def aclose(self) -> None:
        """Write what waits to be written, and close what was opened."""
        if self.relay is not None:
            await self.relay.aclose()
        await self.background.aclose()
        if self.index is not None:
            await self.index.aclose()
        if self.keeping is not None:
            await self.keeping.aclose()
        if self.admission is not None:
            await self.admission.aclose()


def common_of(config: Config, tell: Tell = quiet) -> Common:
    """What a configuration asks for, without IO."""
    tasks = MemoryStore(config.store.tasks)
    index = Index(Seen(tasks), days=config.store.task_days)
    common = Common(server=config.server, tell=tell, tasks=tasks, index=index, telemetry=telemetry_of(config.observe))
    if config.auth is not None:
        common.admission = admission_of(config.auth, tell)
    return common
