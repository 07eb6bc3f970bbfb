"""1.0 content to 0.3: parts, messages, tasks and events, from structs to trees ready to encode.

Rules of this module:

- Two shapes, one set of functions: objects with ``kind`` (JSON-RPC) and the proto shape (HTTP+JSON, gRPC). What
  differs stands in :class:`Writing`.
- Written by hand from attributes: the way over a generic dict and back costs three times as much.
- ``kind``, ``final`` and, in the kind shape, ``contextId`` are always written; the rest only when set.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET

from ..errors import InternalError
from ..model import (
    TERMINAL,
    Artifact,
    JsonObject,
    Message,
    Part,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from .base import Notes
from .enums import ROLE_TO_KIND, ROLE_TO_PROTO, STATE_TO_KIND, STATE_TO_PROTO
from .files import BYTES, Files, given
from .losses import FILENAME, MEDIA_TYPE, REFERENCES, WRAPPED

#: States after which nothing more comes on a 0.3 stream: it is closed when a task waits for input, but stays open
#: while a credential is expected by another way.
FINAL = TERMINAL | {TaskState.INPUT_REQUIRED}

Tree: TypeAlias = dict[str, Any]


class Writing:
    """How one message is written.

    ``kind``: objects with ``kind``, else the proto shape. ``extras``: keys that not every 0.3 proto has (metadata of
    parts, names of files). ``files``: how the peer keeps the bytes of files in the proto
    shape. ``bare_configs``: a webhook is created by its config alone, not by a request that holds it.
    """

    __slots__ = ("bare_configs", "extras", "files", "kind", "lost", "part", "parts", "roles", "states")

    def __init__(
        self,
        notes: Notes | None,
        *,
        kind: bool = False,
        extras: bool = True,
        files: Files = BYTES,
        bare_configs: bool = False,
    ) -> None:
        self.lost = notes.lost if notes is not None else []
        self.kind = kind
        self.extras = extras
        self.files = files
        self.bare_configs = bare_configs
        self.part = _kind_part if kind else _proto_part
        self.parts = "parts" if kind else "content"
        self.roles = ROLE_TO_KIND if kind else ROLE_TO_PROTO
        self.states = STATE_TO_KIND if kind else STATE_TO_PROTO

    def lose(self, name: str) -> None:
        """Note that a row of the loss table was met."""
        if name not in self.lost:
            self.lost.append(name)


def _kind_part(p: Part, w: Writing) -> Tree:
    out: Tree
    if p.text is not UNSET:
        out = {"kind": "text", "text": p.text}
        meta = _carried(p, "text/plain", w) if p.filename or p.media_type else p.metadata
    elif p.data is not UNSET:
        meta = _carried(p, "application/json", w) if p.filename or p.media_type else p.metadata
        data, meta = _object(p.data, meta, w)
        out = {"kind": "data", "data": data}
    else:
        meta = p.metadata
        out = {"kind": "file", "file": _file(p, "uri", "bytes", w)}
    if meta is not None:
        out["metadata"] = meta
    return out


def _proto_part(p: Part, w: Writing) -> Tree:
    out: Tree
    if p.text is not UNSET:
        out = {"text": p.text}
        meta = _carried(p, "text/plain", w) if p.filename or p.media_type else p.metadata
    elif p.data is not UNSET:
        meta = _carried(p, "application/json", w) if p.filename or p.media_type else p.metadata
        data, meta = _object(p.data, meta, w)
        out = {"data": {"data": data}}
    else:
        meta = p.metadata
        out = {"file": _file(p, "fileWithUri", "fileWithBytes", w)}
    if meta is not None:
        if w.extras:
            out["metadata"] = meta
        else:
            w.lose("part-metadata")
    return out


def _file(p: Part, uri: str, raw: str, w: Writing) -> Tree:
    if p.url is not UNSET:
        out: Tree = {uri: p.url}
    elif p.raw is not UNSET:
        out = {raw: given(p.raw, w.files, lambda: w.lose("file-form"))}
    else:
        raise InternalError("a part needs one of text, raw, url and data")
    if p.media_type:
        out["mimeType"] = p.media_type
    if p.filename:
        if w.extras:
            out["name"] = p.filename
        else:
            w.lose("file-name")
    return out


def _carried(p: Part, implied: str, w: Writing) -> JsonObject | None:
    """Metadata of a text or data part with the file name and media type that 0.3 has no place for."""
    extra = {}
    if p.filename:
        extra[FILENAME] = p.filename
        w.lose("part-filename")
    if p.media_type and p.media_type != implied:
        extra[MEDIA_TYPE] = p.media_type
    if p.media_type:
        w.lose("implied-media-type" if p.media_type == implied else "part-media-type")
    return {**(p.metadata or {}), **extra} if extra else p.metadata


def _object(data: Any, meta: JsonObject | None, w: Writing) -> tuple[Any, JsonObject | None]:
    """Data as the object that 0.3 wants, and the metadata that says what was done."""
    if type(data) is dict:
        return data, meta
    w.lose("non-object-data")
    return {"value": data}, {**(meta or {}), WRAPPED: True}


def message(m: Message, w: Writing) -> Tree:
    """A message in either shape."""
    part = w.part
    out: Tree = {"kind": "message"} if w.kind else {}
    out["messageId"] = m.message_id
    if m.context_id:
        out["contextId"] = m.context_id
    if m.task_id:
        out["taskId"] = m.task_id
    out["role"] = w.roles[m.role]
    out[w.parts] = [part(p, w) for p in m.parts]
    meta = m.metadata
    if m.reference_task_ids:
        if w.kind:
            out["referenceTaskIds"] = m.reference_task_ids
        else:
            w.lose("reference-task-ids")
            meta = {**(meta or {}), REFERENCES: list(m.reference_task_ids)}
    if meta is not None:
        out["metadata"] = meta
    if m.extensions:
        out["extensions"] = m.extensions
    return out


def status(s: TaskStatus, w: Writing) -> Tree:
    """A task status in either shape."""
    out: Tree = {"state": w.states[s.state]}
    if s.message is not None:
        out["message"] = message(s.message, w)
    if s.timestamp is not None:
        out["timestamp"] = s.timestamp
    return out


def artifact(a: Artifact, w: Writing) -> Tree:
    """An artifact in either shape."""
    part = w.part
    out: Tree = {"artifactId": a.artifact_id}
    if a.name:
        out["name"] = a.name
    if a.description:
        out["description"] = a.description
    out["parts"] = [part(p, w) for p in a.parts]
    if a.metadata is not None:
        out["metadata"] = a.metadata
    if a.extensions:
        out["extensions"] = a.extensions
    return out


def task(t: Task, w: Writing) -> Tree:
    """A task in either shape."""
    out: Tree = {"kind": "task"} if w.kind else {}
    out["id"] = t.id
    if w.kind or t.context_id:
        out["contextId"] = t.context_id
    out["status"] = status(t.status, w)
    if t.artifacts:
        out["artifacts"] = [artifact(a, w) for a in t.artifacts]
    if t.history:
        out["history"] = [message(m, w) for m in t.history]
    if t.metadata is not None:
        out["metadata"] = t.metadata
    return out


def status_update(e: TaskStatusUpdateEvent, w: Writing) -> Tree:
    """A status event: ``final`` follows from the state."""
    out: Tree = {"kind": "status-update"} if w.kind else {}
    out["taskId"] = e.task_id
    out["contextId"] = e.context_id
    out["status"] = status(e.status, w)
    if w.kind or e.status.state in FINAL:
        out["final"] = e.status.state in FINAL
    if e.metadata is not None:
        out["metadata"] = e.metadata
    return out


def artifact_update(e: TaskArtifactUpdateEvent, w: Writing) -> Tree:
    """An artifact event: absent flags are false."""
    out: Tree = {"kind": "artifact-update"} if w.kind else {}
    out["taskId"] = e.task_id
    out["contextId"] = e.context_id
    out["artifact"] = artifact(e.artifact, w)
    if e.append:
        out["append"] = True
    if e.last_chunk:
        out["lastChunk"] = True
    if e.metadata is not None:
        out["metadata"] = e.metadata
    return out


def event(e: StreamResponse | SendMessageResponse, w: Writing) -> Tree:
    """A stream event or send reply: bare with ``kind``, or in the proto's wrapper."""
    if e.task is not None:
        name, out = "task", task(e.task, w)
    elif e.message is not None:
        name, out = "message", message(e.message, w)
    elif isinstance(e, StreamResponse) and e.status_update is not None:
        name, out = "statusUpdate", status_update(e.status_update, w)
    elif isinstance(e, StreamResponse) and e.artifact_update is not None:
        name, out = "artifactUpdate", artifact_update(e.artifact_update, w)
    else:
        raise InternalError("a stream event or send reply needs a task, message, statusUpdate or artifactUpdate")
    return out if w.kind else {name: out}
