"""``dragoman convert``: one message from one face's shape into another's."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from ..dialects.base import Notes
from ..dialects.cards import dump_card, load_card
from ..errors import ConfigError, PeerError
from ..faces import FACES, Face, read_version
from ..model import OPERATIONS
from ..protocol.operations import WIRE, Version
from .output import say

Kind = Literal["card", "request", "reply"]


class Envelope(msgspec.Struct):
    """A JSON-RPC envelope around the message, if there is one."""

    jsonrpc: str
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()


def convert(
    kind: Kind,
    *,
    from_: Annotated[str, Parameter(name="--from")],
    to: str,
    op: str = "",
) -> None:
    """Translate a card, a request or a reply from stdin to stdout.

    Example: `dragoman convert request --from 0.3 --to 1.0 < message-send.json`

    Parameters
    ----------
    kind
        What stands on stdin: card, request or reply.
    from_
        Its version (0.3, 1.0) or face (0.3/HTTP+JSON, 1.0/GRPC ...); a version alone means JSON-RPC.
    to
        The version or face to write. A gRPC face reads and writes protobuf bytes.
    op
        The operation by its 1.0 name; told from the method of a JSON-RPC envelope, else SendMessage.
    """
    body = sys.stdin.buffer.read()
    notes = Notes()
    source, target = parse_face(from_), parse_face(to)
    if kind == "card":
        written = dump_card(load_card(body, notes), target.version)
    else:
        written = convert_message(kind, body, op, source, target, notes)
    report(notes)
    sys.stdout.buffer.write(written if target.binding == "GRPC" and kind != "card" else written + b"\n")
    sys.stdout.flush()


def convert_message(kind: Kind, body: bytes, op: str, source: Face, target: Face, notes: Notes) -> bytes:
    """Message bytes of ``source`` as those of ``target``; a JSON-RPC envelope around them is taken off."""
    message, method = unwrap(body) if source.binding != "GRPC" else (body, "")
    name = op or operation_of(method, source.version) or "SendMessage"
    if name not in OPERATIONS:
        raise ConfigError(f"{name!r} is no operation; they are {', '.join(OPERATIONS)}")
    operation = OPERATIONS[name]
    reader, writer = FACES[source].dialect, FACES[target].dialect
    if kind == "request":
        return writer.dump_request(operation, reader.load_request(operation, message, notes), notes)
    return writer.dump_reply(operation, reader.load_reply(operation, message, notes), notes)


def unwrap(body: bytes) -> tuple[bytes, str]:
    """The message inside a JSON-RPC envelope and the envelope's method; the body itself if it is bare."""
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
    except msgspec.ValidationError:
        return body, ""
    except msgspec.DecodeError as error:
        raise PeerError(f"stdin is not JSON: {error}") from None
    return bytes(envelope.params) or bytes(envelope.result) or body, envelope.method


def operation_of(method: str, version: Version) -> str:
    """The 1.0 name of a JSON-RPC method of ``version``; empty if it has none."""
    return next((name for name, row in WIRE[version].items() if method in (row.rpc, *row.rpc_aliases)), "")


def parse_face(text: str) -> Face:
    """A face, or a version standing for its JSON-RPC face. Raises ``ConfigError``."""
    version = read_version(text) if "/" not in text and text.strip() else None
    return Face("JSONRPC", version) if version else Face.parse(text)


def report(notes: Notes) -> None:
    """Say on stderr what was forgiven and what was lost."""
    for text in notes.forgiven:
        say(f"forgiven: {text}", style="yellow")
    for name in notes.lost:
        say(f"lost: {name}", style="yellow")
