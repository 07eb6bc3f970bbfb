"""What is asked of bytes that pass undecoded: that they cannot break the framing they are put into, or end too soon.

Rules of this module:

- JSON is one JSON text in UTF-8, or it would spoil the envelope or event around it. protobuf is framed by its length,
  so what is wrong with it stays its own.
- A stream begins with its first message, so that an error in its place can be told as such.
- A stream is complete when its last message says so: a terminal or interrupted state, a lone Message, a 0.3
  ``final``. Only that one is decoded. Any other end is a break, never a silent one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..dialects.base import Dialect, Notes
from ..errors import PeerError, TransportError
from ..model import INTERRUPTED, TERMINAL, StreamResponse
from ..protocol.jsontext import excerpt
from ..service import AnyOperation, ByteStream
from .mending import Mending

_RESTS = TERMINAL | INTERRUPTED
_text = msgspec.json.Decoder(msgspec.Raw)


def sound_json(body: bytes) -> bytes:
    """``body``, which is one JSON text. Raises ``PeerError``."""
    try:
        _text.decode(body)
        if not body.isascii():
            str(body, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"the agent's reply is not JSON: {error}", excerpt=excerpt(body)) from error
    return body


class PassedStream(ByteStream):
    """The messages of an upstream's stream as they are. ``sound``: raises ``PeerError`` for one that may not pass."""

    def __init__(
        self,
        source: ByteStream,
        op: AnyOperation,
        dialect: Dialect,
        sound: Callable[[bytes], bytes] | None,
        mending: Mending,
    ) -> None:
        self._source = source
        self._op = op
        self._dialect = dialect
        self._sound = sound
        self._mending = mending
        self._last = b""
        self._ready: Sequence[bytes] = ()

    async def open(self) -> None:
        """Wait for the first messages. Raises what comes in their place, and closes the stream then."""
        try:
            self._ready = await self.batch()
        except BaseException:
            await self.aclose()
            raise

    async def batch(self) -> Sequence[bytes]:
        ready, self._ready = self._ready, ()
        if ready:
            return ready
        messages = await self._source.batch()
        if not messages:
            self._check_end()
            return ()
        if self._sound is not None:
            for message in messages:
                self._sound(message)
            messages = self._mending.all(self._op, self._dialect, messages)
        self._last = messages[-1]
        return messages

    async def aclose(self) -> None:
        await self._source.aclose()

    def _check_end(self) -> None:
        if not self._last:
            raise PeerError(f"The stream of {self._op.name} ended without an event")
        notes = Notes()
        try:
            event = self._dialect.load_reply(self._op, self._last, notes)
        except PeerError:
            return  # nothing that we know: its reader may
        if not notes.final and not _at_rest(event):
            raise TransportError("The stream ended before its task came to rest")


def _at_rest(event: StreamResponse) -> bool:
    """Whether nothing has to follow an event."""
    told = event.task or event.status_update
    return event.message is not None or (told is not None and told.status.state in _RESTS)
