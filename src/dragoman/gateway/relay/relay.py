"""The push relay of one gateway: what its agents' layers, its callback address and its deliveries share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from ...model import Task
from ...runtime.notice import BARE_FORMS, FORMS, Forms, Retry
from ...runtime.webhooks import AskingPost
from ...security.guard import Guard
from ...store.outbox import Watch
from ...store.sql.outbox import Outbox
from ..background import Background
from ..config import Relay as Settings
from ..config import Server
from .serving import Counts, Pace, Serving

#: Where agents post to, below the address at which they reach the gateway.
CALLBACKS = "/.dragoman/callbacks/"
_ANYWHERE = ("0.0.0.0", "::", "")  # to listen on, not to be called
_KNOWN = 1_000  # watches that are remembered, so that a burst of notifications is one look into the database
#: Told of a task that a notification was about, and of its watch.
Told = Callable[[Watch, Task], None]
#: Removes a callback at its agent, for a task by the agent's own id.
Remove = Callable[[Watch, str], Coroutine[Any, Any, None]]


class Relay:
    """Serves webhooks for all agents of a gateway, over an outbox that its opener closes.

    ``post``: how deliveries leave, over HTTP by default; the others are for tests. Raises ``ConfigError`` if
    pyreqwest is missing.
    """

    def __init__(
        self,
        outbox: Outbox,
        settings: Settings,
        server: Server,
        background: Background,
        *,
        post: AskingPost | None = None,
        pace: Pace | None = None,
        retry: Retry | None = None,
    ) -> None:
        from ...runtime.post import HttpPost

        self.outbox = outbox
        self.counts = Counts()
        self.guard = Guard(settings.allow, private=settings.allow_private)
        self.forms: Forms = BARE_FORMS if settings.bare_events else FORMS
        self.pace = pace or pace_of(settings)
        self.queue = 256
        self.background = background
        #: Called with each task that a notification told of.
        self.told: list[Told] = []
        #: By name of an agent, what removes a callback there.
        self.removing: dict[str, Remove] = {}
        self._known: dict[str, Watch] = {}
        self._given = (settings.callback_url or server.public_url).rstrip("/")
        self._listening = listening_at(server)
        self._serving = Serving(
            outbox,
            post or HttpPost(self.guard),
            self.forms,
            self.counts,
            retry=retry or Retry(tries=settings.tries, first=settings.first, most=settings.most),
            pace=self.pace,
        )

    async def watch(self, reference: str) -> Watch | None:
        """The watch of a reference's digest. What its id, scope and secret are does not change, so that is looked up
        once. Raises ``UnavailableError``."""
        watch = self._known.get(reference) or await self.outbox.known(reference)
        if watch is not None:
            # without the tasks in it, which may be large and are old the next moment
            watch = self._known[reference] = replace(watch, snapshot=None, reply=None, recent=())
            if len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
        return watch

    def forget(self, reference: str) -> None:
        """A watch is gone."""
        self._known.pop(reference, None)

    @property
    def callbacks(self) -> str:
        """Where agents post to, up to the reference."""
        return (self._given or self._listening) + CALLBACKS

    def listens(self, url: str) -> None:
        """Where the gateway listens, once that is known: agents are told so unless the configuration says better."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._listening = f"{parts.scheme}://{_callable(host)}:{parts.port}" if parts.port else url.rstrip("/")

    async def start(self) -> None:
        """Begin to deliver. Raises ``UnavailableError``."""
        await self._serving.start()

    def stir(self) -> None:
        """There is something new to deliver."""
        self._serving.stir()

    async def aclose(self) -> None:
        """Stop delivering; what is left waits for who comes next."""
        await self._serving.aclose()


def pace_of(settings: Settings) -> Pace:
    """The pace that a configuration asks for."""
    return Pace(
        in_flight=settings.in_flight,
        timeout=settings.timeout,
        lease=max(5.0, 3 * settings.timeout),
        dead=settings.dead_days,
    )


def listening_at(server: Server) -> str:
    """The address of a server as far as its configuration tells."""
    return f"{'https' if server.tls else 'http'}://{_callable(server.host)}:{server.port}"


def _callable(host: str) -> str:
    """A host to listen on, as one to call."""
    if host in _ANYWHERE:
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def is_known_outside(settings: Settings, server: Server) -> bool:
    """Whether agents on other machines can be told where to post to."""
    return bool(settings.callback_url or server.public_url) or server.host not in _ANYWHERE
