"""0.3 content to 1.0: parts, messages, tasks and events, as trees.

Rules of this module:

- One reader for every shape in the field: 0.3 with ``kind``, 0.3 in the proto shape, and mixtures of both with 1.0,
  told apart object by object. A 1.0 tree comes through unchanged.
- The tree is fresh from the decoder and is consumed: objects are changed in place, which saves copying them.
- What is not understood is left where it is; the canonical structs judge the result.
"""

from __future__ import annotations

from typing import Any

from ..model import INTERRUPTED, TERMINAL, TaskState, canonical_time
from .base import Notes
from .enums import ROLE_UP, STATE_UP
from .files import Files, taken
from .losses import FILENAME, MEDIA_TYPE, REFERENCES, WRAPPED


class Reading:
    """How one tree is read.

    ``proto``: a part without ``kind`` may nest its data as the proto does. ``modern``: the peer claims to speak 1.0.
    ``blocking``: what a send means that does not say. ``files``: how the peer keeps file bytes
    in the proto shape, None where there is no question.
    """

    __slots__ = ("blocking", "files", "modern", "notes", "proto")

    def __init__(
        self,
        notes: Notes,
        *,
        proto: bool = False,
        modern: bool = False,
        blocking: bool = True,
        files: Files | None = None,
    ) -> None:
        self.notes = notes
        self.proto = proto
        self.modern = modern
        self.blocking = blocking
        self.files = files

    def lose(self, name: str) -> None:
        """Note that a row of the loss table was met."""
        if name not in self.notes.lost:
            self.notes.lost.append(name)

    def forgive(self, text: str) -> None:
        """Note, once, what had to be forgiven."""
        if text not in self.notes.forgiven:
            self.notes.forgiven.append(text)


def part(p: Any, r: Reading) -> Any:
    """``{kind:"file",file:{uri}}`` or ``{file:{fileWithUri}}`` to ``{url}``, and so on for bytes, data and text."""
    if type(p) is not dict:
        return p
    kind = p.pop("kind", None)
    if "text" in p and len(p) == 1:
        return p
    if type(p.get("file")) is dict:
        _file(p, r)
    elif "data" in p:
        _data(p, kind, r)
    if type(p.get("metadata")) is dict:
        _restore(p, p["metadata"], r)
    return p


def _file(p: dict[str, Any], r: Reading) -> None:
    file = p.pop("file")
    nested = "fileWithBytes" in file  # as the proto calls it; what the kind shape calls bytes is base64 for once
    content = {right: value for name, right in _FILE_NAMES if (value := file.pop(name, None)) is not None}
    if not content.keys() & {"raw", "url"}:
        p["file"] = file | content  # nothing that can be read: the decoder shall complain about it
        return
    if r.files is not None and nested and "raw" in content:
        media_type = content.get("mediaType")
        kind = media_type if type(media_type) is str else ""
        content["raw"] = taken(content["raw"], kind, r.files, lambda: r.lose("file-form"))
    if file:
        r.forgive(f"unknown keys of a file ignored: {', '.join(map(str, file))}")
        r.lose("unknown-keys")
    if p.get("data", 0) is None:
        del p["data"]
    p |= content


_FILE_NAMES = (
    ("bytes", "raw"),
    ("uri", "url"),
    ("fileWithBytes", "raw"),
    ("fileWithUri", "url"),
    ("data", "raw"),
    ("name", "filename"),
    ("mimeType", "mediaType"),
    ("mediaType", "mediaType"),
)


def _data(p: dict[str, Any], kind: Any, r: Reading) -> None:
    value = p["data"]
    if value is None and "text" in p and kind == "text":
        del p["data"]  # a serialiser that writes every member: kind says which one is meant
        return
    nested = r.proto and kind is None and type(value) is dict and len(value) == 1 and type(value.get("data")) is dict
    if nested:
        value = p["data"] = value["data"]
    meta = p.get("metadata")
    if type(meta) is dict and meta.get(WRAPPED) is True and not (r.modern and kind is None):
        if type(value) is dict and "value" in value:
            p["data"] = value["value"]
            r.lose("non-object-data")
        _take(p, WRAPPED)


def _restore(p: dict[str, Any], meta: dict[str, Any], r: Reading) -> None:
    for key, name in ((FILENAME, "filename"), (MEDIA_TYPE, "mediaType")):
        if type(meta.get(key)) is str:
            value = _take(p, key)
            p.setdefault(name, value)


def _take(holder: dict[str, Any], key: str) -> Any:
    """Take a reserved key out of an object's metadata, and the metadata too once nothing else is in it."""
    value = holder["metadata"].pop(key)
    if not holder["metadata"]:
        del holder["metadata"]
    return value


def message(m: Any, r: Reading) -> Any:
    """A message: ``content`` to ``parts``, role by its 1.0 name, carried reference ids back in place."""
    if type(m) is not dict:
        return m
    m.pop("kind", None)
    if "content" in m and "parts" not in m:
        m["parts"] = m.pop("content")
    parts = m.get("parts")
    if type(parts) is list:
        for p in parts:
            part(p, r)
    role = m.get("role")
    if type(role) is str:
        m["role"] = _named(role, ROLE_UP, r) if r.modern else ROLE_UP.get(role, role)
    meta = m.get("metadata")
    if type(meta) is dict and REFERENCES in meta:
        m.setdefault("referenceTaskIds", _take(m, REFERENCES))
    return m


def status(s: Any, r: Reading) -> Any:
    """A task status: state by its 1.0 name, timestamp canonical, a message that says nothing removed."""
    if type(s) is not dict:
        return s
    if "update" in s:
        s.setdefault("message", s.pop("update"))
    state = s.get("state")
    if type(state) is str:
        s["state"] = _named(state, STATE_UP, r)
        if state == "unknown":
            r.lose("unknown-state")
    if "message" in s and not _says_nothing(s["message"]):
        s["message"] = message(s["message"], r)
    elif "message" in s:
        del s["message"]
    if type(s.get("timestamp")) is str:
        _timestamp(s, r)
    return s


def _named(word: str, names: dict[str, str], r: Reading) -> str:
    name = names.get(word, word)
    if r.modern and name != word:
        r.forgive(f"{word}, a word of 0.3, taken as {name}")
    return name


def _says_nothing(m: Any) -> bool:
    """Python's 0.3 SDK invents a message without id and parts where there was none."""
    if type(m) is not dict:
        return m is None
    return not (m.get("messageId") or m.get("parts") or m.get("content"))


def _timestamp(s: dict[str, Any], r: Reading) -> None:
    text = s["timestamp"]
    try:
        s["timestamp"] = canonical_time(text)
    except (ValueError, OverflowError):
        del s["timestamp"]
        r.lose("unreadable-timestamp")
        return
    if text is not s["timestamp"] and text[10:].upper().rstrip("0123456789.:") == "T":
        r.lose("zoneless-timestamp")


def artifact(a: Any, r: Reading) -> Any:
    """An artifact: its parts."""
    if type(a) is dict and type(a.get("parts")) is list:
        for p in a["parts"]:
            part(p, r)
    return a


def task(t: Any, r: Reading) -> Any:
    """A task, bare or in ``{task}``: its status, artifacts and history."""
    if type(t) is not dict:
        return t
    if type(t.get("task")) is dict and "status" not in t:
        r.forgive("task wrapped where it stands alone")
        t = t["task"]
    t.pop("kind", None)
    if "status" in t:
        t["status"] = status(t["status"], r)
    if type(t.get("artifacts")) is list:
        t["artifacts"] = [artifact(a, r) for a in t["artifacts"]]
    if type(t.get("history")) is list:
        for m in t["history"]:
            message(m, r)
    return t


def _status_update(e: Any, r: Reading) -> Any:
    if type(e) is not dict:
        return e
    e.pop("kind", None)
    state = e["status"] = status(e.get("status"), r)
    if e.pop("final", False) is True:
        r.notes.final = True
        if type(state) is dict and type(word := state.get("state")) is str and word in _GOING_ON:
            r.lose("early-final")
    return e


_GOING_ON = frozenset(state.value for state in TaskState) - {state.value for state in TERMINAL | INTERRUPTED}


def _artifact_update(e: Any, r: Reading) -> Any:
    if type(e) is dict:
        e.pop("kind", None)
        e["artifact"] = artifact(e.get("artifact"), r)
    return e


_MEMBERS = {
    "task": ("task", task),
    "message": ("message", message),
    "msg": ("message", message),
    "statusUpdate": ("statusUpdate", _status_update),
    "artifactUpdate": ("artifactUpdate", _artifact_update),
    "status-update": ("statusUpdate", _status_update),
    "artifact-update": ("artifactUpdate", _artifact_update),
    "taskStatusUpdate": ("statusUpdate", _status_update),
    "taskArtifactUpdate": ("artifactUpdate", _artifact_update),
}


def event(e: Any, r: Reading) -> Any:
    """A stream event or send reply, bare or wrapped, with ``kind`` or without, to the 1.0 wrapper."""
    if type(e) is not dict:
        return e
    kind = _kind(e)
    if kind in _MEMBERS:
        name, read = _MEMBERS[kind]
        if r.modern or r.proto:
            r.forgive(f"{name} stands bare where it should be wrapped")
        elif "kind" not in e:
            r.forgive(f"kind absent, taken as {kind}")
        return {name: read(e, r)}
    if not (r.modern or r.proto):
        r.forgive("reply wrapped, as in 1.0, where it should stand bare")
    e.pop("kind", None)
    out: dict[str, Any] = {}
    for key, value in e.items():
        if key in _MEMBERS and value is not None:
            name, read = _MEMBERS[key]
            if key not in (name, "msg"):
                r.forgive(f"{key} taken as {name}")
            out[name] = read(value, r)
        else:
            out[key] = value
    return out


def _kind(e: dict[str, Any]) -> str:
    """What a bare object is, by its ``kind`` or else by its keys; empty for a wrapper."""
    kind = e.get("kind")
    if type(kind) is str and kind in _MEMBERS:
        return kind
    if "artifact" in e:
        return "artifact-update"
    if "status" in e:
        return "status-update" if "id" not in e and "taskId" in e else "task"
    if "messageId" in e or "role" in e or type(e.get("parts", e.get("content"))) is list:
        return "message"
    return ""
