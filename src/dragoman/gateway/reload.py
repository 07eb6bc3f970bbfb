"""Another configuration without a restart: when its file, or one that it names, has changed, or on request.

Rules of this module:

- What is broken is told with its lines, and what there was stays.
- What cannot change while it runs is named, so that nobody waits for it.
- Files are looked at by time of change, size and identity; one that is still being written is given a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

from ..errors import DragomanError
from ..server.asgi import App
from .common import Tell
from .config import Config
from .config.files import Stamp, stamps
from .config.reading import ConfigFileError, Loaded
from .switchboard import Switchboard

log = logging.getLogger(__name__)

EVERY = 1.0  # seconds between looks at the files
_SETTLING = 0.1  # seconds for whoever writes a file
#: Keys that are looked at when the process starts, and not again.
_AT_START: tuple[tuple[str, Callable[[Config], object]], ...] = (
    ("server.host", lambda config: config.server.host),
    ("server.port", lambda config: config.server.port),
    ("server.tls", lambda config: config.server.tls),
    ("server.drain", lambda config: config.server.drain),
    ("store", lambda config: config.store),
    ("relay", lambda config: config.relay),
    ("observe", lambda config: config.observe),
)


def needs_restart(before: Config, after: Config) -> tuple[str, ...]:
    """The keys whose change has no effect before a restart."""
    return tuple(key for key, value in _AT_START if value(before) != value(after))


async def _nothing(beside: Mapping[int, App]) -> None:
    """Nobody serves ports of their own."""


class Reloader:
    """Keeps ``board`` at what ``load`` gives, whose files are those of ``loaded``.

    ``ports`` is told what there is on ports of their own, ``renewed`` that certificates may be new; ``tell`` hears, in
    words, what became of it. ``asked``: set by who asks for a reload, maybe before there is anything to reload.
    ``every``: seconds between looks at the files.
    """

    def __init__(
        self,
        board: Switchboard,
        load: Callable[[], Loaded],
        loaded: Loaded,
        tell: Tell,
        *,
        ports: Callable[[Mapping[int, App]], Awaitable[None]] = _nothing,
        renewed: Callable[[], None] = lambda: None,
        asked: asyncio.Event | None = None,
        every: float = EVERY,
    ) -> None:
        self._board = board
        self._load = load
        self._tell = tell
        self._ports = ports
        self._renewed = renewed
        self._every = every
        self._asked = asked or asyncio.Event()
        self._started = loaded.config
        self._seen = dict(loaded.files)
        self._ports_told: frozenset[int] = frozenset(board.beside)

    async def run(self) -> NoReturn:
        """Look after it for good."""
        while True:
            try:
                async with asyncio.timeout(self._every):
                    await self._asked.wait()
            except TimeoutError:
                pass
            if (asked := self._asked.is_set()) or self._changed():
                self._asked.clear()
                await self._settled()
                await self.reload(asked=asked)
            await self._tell_ports()

    async def _settled(self) -> None:
        """Until two looks show the same files: one that is being written is not read."""
        before: dict[str, Stamp] | None = None
        while before != (now := stamps(self._seen)):
            before = now
            await asyncio.sleep(_SETTLING)

    async def reload(self, *, asked: bool = True) -> bool:
        """Load and take over what there is now; whether that could be done.

        ``asked``: somebody said so. A mere change of the file, which may be half written, does not open the gateway.
        """
        seen = stamps(self._seen)  # before it is read: what is written meanwhile is another change
        try:
            loaded = self._load()
        except ConfigFileError as error:
            self._seen = seen
            self._tell(f"The configuration is broken and the one before stays:\n{error}")
            return False
        self._seen = {**loaded.files, **{path: stamp for path, stamp in seen.items() if path in loaded.files}}
        if not asked and self._board.config.auth is not None and loaded.config.auth is None:
            self._tell(
                "[auth] is gone from the configuration, which would let everybody in: the one before stays. "
                "Send SIGHUP if that is meant"
            )
            return False
        try:
            self._renewed()
            await self._board.reload(loaded.config)
        except DragomanError as error:
            self._tell(f"The configuration cannot be used and the one before stays: {error}")
            return False
        late = needs_restart(self._started, loaded.config)
        self._tell("Reloaded the configuration" + (f"; {', '.join(late)}: only after a restart" if late else ""))
        return True

    def _changed(self) -> bool:
        now: dict[str, Stamp] = stamps(self._seen)
        return now != self._seen

    async def _tell_ports(self) -> None:
        """Ports are closed when whoever was served there is done, which may be long after the reload."""
        beside = self._board.beside
        if self._ports_told != beside.keys():
            self._ports_told = frozenset(beside)
            try:
                await self._ports(beside)
            except DragomanError as error:
                self._tell(str(error))
