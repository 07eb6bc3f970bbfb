"""A TCP relay that keeps the bytes: it stands in front of a server and can say what passed at a given time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, groupby
from types import TracebackType

KEPT_CHUNKS = 4000
KEPT_OF_CHUNK = 8192
SHOWN = 2500


@dataclass(frozen=True)
class Chunk:
    at: float
    connection: int
    sent: bool
    data: bytes


class Recorder:
    """Listens at once; where it relays to can be told later, when the server knows its port."""

    def __init__(self, target: str = "", host: str = "127.0.0.1") -> None:
        self.target, self._host = target, host
        self._chunks: deque[Chunk] = deque(maxlen=KEPT_CHUNKS)
        self._connections: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self._server: asyncio.Server | None = None

    @property
    def authority(self) -> str:
        assert self._server is not None
        return f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Recorder:
        self._server = await asyncio.start_server(self._accept, self._host, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def between(self, started: float, ended: float) -> str:
        """What passed in a stretch of time, connection by connection; `>` to the server, `<` from it."""
        chunks = [chunk for chunk in self._chunks if started <= chunk.at <= ended]
        chunks.sort(key=lambda chunk: (chunk.connection, chunk.at))
        shown = []
        for (_, sent), run in groupby(chunks, key=lambda chunk: (chunk.connection, chunk.sent)):
            data = [chunk.data for chunk in run]
            closed = "" if data[-1] else "(closes)"
            shown.append(f"{'>' if sent else '<'} {readable(b''.join(data))}{closed}")
        return "\n".join(shown)

    def forget(self) -> None:
        self._chunks.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        number = next(self._numbers)
        host, _, port = self.target.rpartition(":")
        try:
            onward, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._relay(reader, back, number, sent=True))
                both.create_task(self._relay(onward, writer, number, sent=False))
        except* OSError:
            pass
        finally:
            writer.close()
            back.close()

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, *, sent: bool
    ) -> None:
        while data := await reader.read(65536):
            self._chunks.append(Chunk(time.time(), number, sent, data[:KEPT_OF_CHUNK]))
            writer.write(data)
            await writer.drain()
        self._chunks.append(Chunk(time.time(), number, sent, b""))
        with suppress(OSError):
            writer.write_eof() if sent else writer.close()


def readable(data: bytes) -> str:
    """Text stays text; other bytes are written as escapes."""
    text = data.decode("ascii" if b"\0" in data else "utf-8", "backslashreplace").replace("\r\n", "\n")
    text = "".join(
        character if character.isprintable() or character == "\n" else f"\\x{ord(character):02x}" for character in text
    )
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(data)} bytes)"
