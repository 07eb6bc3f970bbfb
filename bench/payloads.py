"""What is sent: the same messages for everybody, prebuilt, with one number in them that changes from call to call.

Rules of this module:

- A :class:`Shot` is a finished HTTP/1.1 request, cut where its number goes, and the bytes that a good reply holds.
- The JSON-RPC SendMessage request is about 260 bytes; the task that answers it about 640.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TEXT = "echo The quick brown fox jumps over the lazy dog, twice."
CHUNKS = 200
#: Every id that is sent holds this, replaced by the number of the call at the same width.
NUMBER = b"000000000000"
MESSAGE_ID = f"message-{NUMBER.decode()}"


class Shot(NamedTuple):
    """A request ready for a socket and the proof of a good reply: ``marker`` is in it, ``events`` at least so often."""

    host: str
    port: int
    head: bytes
    tail: bytes
    marker: bytes
    events: int = 0

    def bytes(self, number: int) -> bytes:
        """The request of call ``number``."""
        return b"%b%012d%b" % (self.head, number, self.tail) if self.tail else self.head


def post(url: str, body: bytes, marker: bytes, headers: Mapping[str, str], events: int = 0) -> Shot:
    """A POST of JSON; ``events`` > 0 asks for an event stream and expects at least that many events."""
    return _shot("POST", url, body, marker, {"content-type": "application/json", **headers}, events)


def _shot(method: str, url: str, body: bytes, marker: bytes, headers: Mapping[str, str], events: int) -> Shot:
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    fields = {"host": f"{host}:{port}", "accept": "text/event-stream" if events else "*/*", **headers}
    lines = [f"{method} {parts.path or '/'} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    raw = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body
    head, number, tail = raw.partition(NUMBER)
    return Shot(host, port, head, tail if number else b"", marker, events)


def message_1_0(text: str = TEXT) -> dict[str, Any]:
    """A message of 1.0 as JSON data."""
    return {"messageId": MESSAGE_ID, "role": "ROLE_USER", "parts": [{"text": text}]}


def message_0_3(text: str = TEXT) -> dict[str, Any]:
    """A message of 0.3 as JSON data."""
    return {"kind": "message", "messageId": MESSAGE_ID, "role": "user", "parts": [{"kind": "text", "text": text}]}


def rpc(method: str, params: Mapping[str, Any]) -> bytes:
    """A JSON-RPC request."""
    return compact({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def compact(data: Any) -> bytes:
    """JSON text without spaces."""
    return json.dumps(data, separators=(",", ":")).encode()


def echoed() -> bytes:
    """What every echo of :data:`TEXT` holds outside of the history."""
    return TEXT.removeprefix("echo ").encode()


V1: Mapping[str, str] = {"a2a-version": "1.0"}
V0: Mapping[str, str] = {"a2a-version": "0.3"}


def send_rpc_1_0(url: str) -> Shot:
    """SendMessage over JSON-RPC."""
    return post(url, rpc("SendMessage", _sending()), b"TASK_STATE_COMPLETED", V1)


def send_rpc_0_3(url: str) -> Shot:
    """message/send over JSON-RPC."""
    return post(url, rpc("message/send", {"message": message_0_3()}), b'"completed"', V0)


def send_rest_1_0(url: str) -> Shot:
    """SendMessage over HTTP+JSON."""
    return post(url.rstrip("/") + "/message:send", compact(_sending()), b"TASK_STATE_COMPLETED", V1)


def stream_rpc_1_0(url: str) -> Shot:
    """SendStreamingMessage over JSON-RPC: an artifact in :data:`CHUNKS` pieces."""
    params = {"message": message_1_0(f"chunks {CHUNKS}")}
    return post(url, rpc("SendStreamingMessage", params), b"TASK_STATE_COMPLETED", V1, events=CHUNKS)


def slow_rpc_1_0(url: str) -> Shot:
    """SendStreamingMessage over JSON-RPC of a task that does not end, for ``bench.pacing``."""
    params = {"message": message_1_0()}
    return post(url, rpc("SendStreamingMessage", params), b"TASK_STATE_SUBMITTED", V1, events=1)


def get_rpc_1_0(url: str, task: str) -> Shot:
    """GetTask over JSON-RPC."""
    return post(url, rpc("GetTask", {"id": task}), b"TASK_STATE_COMPLETED", V1)


def _sending() -> dict[str, Any]:
    return {"message": message_1_0(), "configuration": {"acceptedOutputModes": ["text/plain"]}}


def send_grpc_1_0() -> tuple[bytes, bytes]:
    """SendMessageRequest of 1.0 on the wire, and what a good reply holds."""
    part = _field(1, TEXT.encode())
    message = _field(1, MESSAGE_ID.encode()) + b"\x20\x01" + _field(5, part)  # role = ROLE_USER
    configuration = _field(1, b"text/plain")
    return _field(2, message) + _field(3, configuration), _field(1, echoed())


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field; lengths here fit one varint byte."""
    if len(value) > 127:
        raise ValueError("lengths above 127 are not needed here")
    return bytes((number << 3 | 2, len(value))) + value


_ID = "7b1e4d92-0c55-4f3a-9a41-{:012d}"


def task_reply(method: str) -> bytes:
    """What a bare server answers: the reply to ``method``, of the size that the demo agent makes."""
    message = {**message_1_0(), "contextId": _ID.format(1), "taskId": _ID.format(2)}
    task = {
        "id": _ID.format(2),
        "contextId": _ID.format(1),
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-30T12:00:00.123Z"},
        "artifacts": [{"artifactId": _ID.format(3), "name": "echo", "parts": [{"text": echoed().decode()}]}],
        "history": [message],
    }
    return compact({"jsonrpc": "2.0", "id": 1, "result": {"task": task} if method == "SendMessage" else task})


def translation(kind: str, version: str) -> bytes:
    """The ``kind`` ("message" or "task", 50 messages, about 13 KB) to translate, as ``version`` writes it.

    A 1.0 message stands in its SendMessage reply, a 0.3 message by itself, as on their wires.
    """
    old = version == "0.3"
    if kind == "message":
        return compact(_turn(0, old) if old else {"message": _turn(0, old)})
    state = "input-required" if old else "TASK_STATE_INPUT_REQUIRED"
    task = {
        "id": _ID.format(2),
        "contextId": _ID.format(1),
        "status": {"state": state, "timestamp": "2026-11-30T12:00:00.123Z"},
        "history": [_turn(n, old) for n in range(50)],
    }
    return compact({**task, "kind": "task"} if old else task)


def _turn(n: int, old: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"text": f"Turn {n}: the quick brown fox jumps over the lazy dog."}
    if n % 10 == 9:
        part = {"data": {"step": f"number {n}", "done": True, "tags": ["fox", "dog"]}}
    role = "user" if n % 2 == 0 else "agent"
    turn = {
        "messageId": _ID.format(n + 100),
        "contextId": _ID.format(1),
        "taskId": _ID.format(2),
        "role": role if old else f"ROLE_{role.upper()}",
        "parts": [{"kind": next(iter(part)), **part} if old else part],
    }
    return {**turn, "kind": "message"} if old else turn
