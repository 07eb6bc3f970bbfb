"""Golden bodies: one message in every shape, to be read and written alike.

A case has ``op``, ``side`` (request or reply), the body per shape (``1.0``, ``kind``, ``proto``; an absent shape cannot
say it), and where they are met ``lost`` (rows of the loss table per shape) and ``final``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.model import OPERATIONS, Operation

_FOLDER = Path(__file__).parents[1] / "vectors"
SHAPES: dict[str, Dialect] = {"1.0": v1.JSON, "kind": v03.JSON, "proto": v03_proto.JSON}


class Case(msgspec.Struct, frozen=True):
    """One golden message; ``bodies`` by shape, as parsed JSON."""

    name: str
    op: Operation[Any, Any]
    side: str
    bodies: dict[str, Any]
    lost: dict[str, list[str]]
    final: bool

    def load(self, dialect: Dialect, body: bytes, notes: Notes | None = None) -> Any:
        read = dialect.load_request if self.side == "request" else dialect.load_reply
        return read(self.op, body, notes)

    def dump(self, dialect: Dialect, value: Any, notes: Notes | None = None) -> bytes:
        write = dialect.dump_request if self.side == "request" else dialect.dump_reply
        return write(self.op, value, notes)

    @property
    def canonical(self) -> Any:
        """The message as the model has it, made without any dialect."""
        kind = self.op.request if self.side == "request" else self.op.response
        return None if kind is type(None) else msgspec.convert(self.bodies["1.0"], kind)


def text(body: Any) -> bytes:
    """Compact JSON text of a parsed body, its keys in their order."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _case(row: dict[str, Any]) -> Case:
    bodies = {shape: row[shape] for shape in SHAPES if shape in row}
    return Case(row["name"], OPERATIONS[row["op"]], row["side"], bodies, row.get("lost", {}), row.get("final", False))


CASES = [_case(row) for path in sorted(_FOLDER.glob("*.json")) for row in json.loads(path.read_text())]
