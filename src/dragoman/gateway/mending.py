"""Whether the bytes of an agent may go on as they are, told from its first replies.

Rules of this module:

- Bytes pass where both sides speak one dialect. Agents that claim a version and write something between the versions
  would pass that on to callers who read strictly, so the first messages of each operation are looked into.
- One that had to be forgiven something is written anew, and from then on nothing of that agent passes.
- A field that nobody knows is no fault: the agent may be newer than we are. One that belongs to 0.3 is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialects.base import Dialect, Notes
from ..errors import PeerError
from ..service import AnyOperation

SAMPLE = 20  # messages of each operation that are looked into
_UNKNOWN = "unknown field "
_OLD = ("kind", "final")


class Mending:
    """What is known of one agent's messages. ``needed``: they must be read and written anew; ``tell`` is told once."""

    def __init__(self, tell: Callable[[str], None], *, needed: bool = False) -> None:
        self.needed = needed
        self._tell = tell
        self._seen: dict[AnyOperation, int] = {}

    def looked_into(self, op: AnyOperation, dialect: Dialect, body: bytes) -> bytes:
        """``body``, mended if it has to be and can be: what we do not understand at all, its reader may."""
        seen = self._seen.get(op, 0)
        if seen >= SAMPLE and not self.needed:
            return body
        self._seen[op] = seen + 1
        notes = Notes()
        try:
            reply = dialect.load_reply(op, body, notes)
        except PeerError:
            return body
        faults = [text for text in notes.forgiven if not _harmless(text)]
        if not faults:
            return body
        if not self.needed:
            self.needed = True
            self._tell(f"its replies are not passed on as they are, but mended: {'; '.join(faults[:3])}")
        return dialect.dump_reply(op, reply, Notes())

    def all(self, op: AnyOperation, dialect: Dialect, bodies: Sequence[bytes]) -> Sequence[bytes]:
        """As :meth:`looked_into`, of several messages."""
        if self._seen.get(op, 0) >= SAMPLE and not self.needed:
            return bodies
        return [self.looked_into(op, dialect, body) for body in bodies]


def _harmless(text: str) -> bool:
    return text.startswith(_UNKNOWN) and text.removeprefix(_UNKNOWN).split(" ")[0].rpartition(".")[2] not in _OLD
