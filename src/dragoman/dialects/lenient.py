"""The one lenient pass: a JSON tree made to fit the canonical structs, and a note of each thing forgiven.

Rules of this module:

- Only trees that the strict decoder refused come here, so it may be slow; it walks by the structs' own type
  information and never looks inside free JSON (metadata, data, params).
- ProtoJSON is honoured: null is unset (but a part's data may be null), proto field names, enum numbers, integers as
  text or integral float, URL-safe and unpadded base64.
- Unknown fields are ignored, known wrong names (``ALIASES``) taken for the right ones.
- A reply is forgiven more than a request: an absent REQUIRED value is its default (protobuf printers drop defaults),
  an unknown enum name is UNSPECIFIED. Missing objects stay missing: they are what tells a reply from ``{}``.
- What cannot be forgiven is left as it is, for the decoder to complain about.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from .. import model
from .base import Notes
from .enums import spelled

#: Names that peers use and no proto has (specification samples and drafts), per struct: wrong name -> right name.
ALIASES: dict[type[msgspec.Struct], dict[str, str]] = {
    model.StreamResponse: {
        "taskStatusUpdate": "statusUpdate",
        "taskArtifactUpdate": "artifactUpdate",
        "msg": "message",
    },
    model.SendMessageResponse: {"msg": "message"},
    model.ListTasksRequest: {"lastUpdatedAfter": "statusTimestampAfter"},
    model.Part: {"mimeType": "mediaType", "name": "filename"},
    model.OAuthFlows: {"authorizationCodeFlow": "authorizationCode"},
    model.AgentInterface: {"transport": "protocolBinding"},
    model.APIKeySecurityScheme: {"in": "location", "in_": "location"},
    model.TaskPushNotificationConfig: {"configId": "id", "pushNotificationConfigId": "id"},
}


class Pass(NamedTuple):
    """One run: whether the tree is a reply, and where to note what was forgiven. ``loses``: what is left out counts as
    a loss, as it does not for what is only looked at (a card)."""

    reply: bool
    notes: Notes
    loses: bool

    def forgive(self, text: str) -> None:
        self.notes.forgiven.append(text)

    def leave_out(self, place: str) -> None:
        """Note a field that nobody knows."""
        self.forgive(f"unknown field {place} ignored")
        if self.loses and "unknown-keys" not in self.notes.lost:
            self.notes.lost.append("unknown-keys")


Fit: TypeAlias = Callable[[Any, str, Pass], Any]


class Field(NamedTuple):
    """One field of a struct: its JSON name, how to fit a value, what an absent one is in a reply."""

    name: str
    fit: Fit
    keeps_null: bool
    absent: Callable[[], Any] | None


class Plan(NamedTuple):
    """A struct's fields by every name that they are read under, and the REQUIRED ones that have a default."""

    names: dict[str, Field]
    defaulted: tuple[Field, ...]


def fit(value: Any, kind: type[Any], *, reply: bool, notes: Notes) -> Any:
    """Make ``value`` fit ``kind`` as far as it can be forgiven. Returns a new tree, for the decoder to judge."""
    return _struct(value, "", Pass(reply, notes, kind is not model.AgentCard), kind)


def _struct(value: Any, path: str, run: Pass, kind: type[msgspec.Struct]) -> Any:
    if type(value) is not dict:
        return value
    plan = _plan(kind)
    out: dict[str, Any] = {}
    for name, item in value.items():
        field = plan.names.get(name)
        place = f"{path}.{name}" if path else name
        if field is None:
            run.leave_out(place)
        elif item is None and not field.keeps_null:
            run.forgive(f"null at {place} taken as unset")
        else:
            if field.name != name:
                run.forgive(f"field name {place} taken as {field.name}")
            if field.name == name or value.get(field.name) is None:
                out[field.name] = field.fit(item, place, run)
    if run.reply:
        _complete(out, plan, path, run)
    return out


def _complete(out: dict[str, Any], plan: Plan, path: str, run: Pass) -> None:
    for field in plan.defaulted:
        if field.name not in out and field.absent is not None:
            run.forgive(f"{f'{path}.' if path else ''}{field.name} absent, taken as its default")
            out[field.name] = field.absent()


def _enum(value: Any, path: str, run: Pass, kind: type[enum.Enum]) -> Any:
    name = spelled(kind, value)
    if name is None:
        if not run.reply:
            return value
        run.forgive(f"unknown value {value!r:.60} at {path} taken as unspecified")
        return next(iter(kind)).value
    if name != value:
        run.forgive(f"{value!r} at {path} taken as {name}")
    return name


def _bytes(value: Any, path: str, run: Pass) -> Any:
    if type(value) is not str:
        return value
    text = value.replace("-", "+").replace("_", "/").rstrip("=")
    text += "=" * (-len(text) % 4)
    if text != value:
        run.forgive(f"base64 at {path} is URL-safe or unpadded")
    return text


def _int(value: Any, path: str, run: Pass) -> Any:
    if type(value) is str:
        digits = value.removeprefix("-")
        number: Any = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else value
    else:
        number = int(value) if type(value) is float and value.is_integer() else value
    if number is not value:
        run.forgive(f"{value!r} at {path} taken as {number}")
    return number


def _list(value: Any, path: str, run: Pass, item: Fit) -> Any:
    if type(value) is not list:
        return value
    return [item(element, f"{path}[{index}]", run) for index, element in enumerate(value)]


def _map(value: Any, path: str, run: Pass, item: Fit) -> Any:
    if type(value) is not dict:
        return value
    return {key: item(element, f"{path}[{key}]", run) for key, element in value.items()}


def _as_is(value: Any, path: str, run: Pass) -> Any:
    return value


@functools.cache
def _plan(kind: type[msgspec.Struct]) -> Plan:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    names: dict[str, Field] = {}
    defaulted: list[Field] = []
    for each in info.fields:
        field = Field(each.encode_name, _fit_for(each.type), isinstance(each.type, inspect.AnyType), _absent(each))
        names[each.name] = names[each.encode_name] = field
        if each.required and field.absent is not None:
            defaulted.append(field)
    for wrong, right in ALIASES.get(kind, {}).items():
        names.setdefault(wrong, names[right])
    return Plan(names, tuple(defaulted))


def _fit_for(info: inspect.Type) -> Fit:
    match info:
        case inspect.StructType(cls=cls):
            return functools.partial(_struct, kind=cls)
        case inspect.EnumType(cls=cls):
            return functools.partial(_enum, kind=cls)
        case inspect.VarTupleType(item_type=item):
            return functools.partial(_list, item=_fit_for(item))
        case inspect.DictType(value_type=item):
            return functools.partial(_map, item=_fit_for(item))
        case inspect.UnionType(types=types):
            return _fit_for(types[0])
        case inspect.BytesType():
            return _bytes
        case inspect.IntType():
            return _int
        case _:
            return _as_is


def _absent(field: inspect.Field) -> Callable[[], Any] | None:
    match field.type:
        case inspect.StrType():
            return str
        case inspect.IntType():
            return int
        case inspect.VarTupleType():
            return list
        case inspect.DictType():
            return dict
        case inspect.EnumType(cls=cls):
            return lambda: next(iter(cls)).value
        case _:
            return None
