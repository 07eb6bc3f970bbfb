"""``gateway.toml`` from text to :class:`Config`: every key by the type of its field, every problem with its line.

Rules of this module:

- A key that cannot be read counts as not given, so that the rest is still looked at.
- What one value may be is in its type; what values may be together is in ``checks``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from ...errors import ConfigError
from . import places
from .checks import Complaint, complaints
from .files import Stamp, files_of, stamps
from .values import FilePath, Place, Secret
from .whole import Config, completed

S = TypeVar("S", bound=Struct)
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


class Problem(NamedTuple):
    """One thing that is wrong. ``line`` counts from 1, 0 if it is about the whole file; ``key`` may be empty."""

    file: str
    line: int
    key: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key}: {self.text}" if self.key else f"{where}: {self.text}"


class Loaded(NamedTuple):
    """A configuration, and every file that it depends on, as it was found: its own, those of secrets, and those that
    it names."""

    config: Config
    files: Mapping[str, Stamp]


class ConfigFileError(ConfigError):
    """Raised for a configuration that cannot be used; ``problems`` are all of them, in the order of their lines."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def load(file: str | Path, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read and check a configuration file, secrets included; ``environment`` is the process's own by default.

    Raises ``ConfigFileError`` with everything that is wrong.
    """
    return load_all(file, environment=environment).config


def load_all(file: str | Path, *, environment: Mapping[str, str] | None = None) -> Loaded:
    """As :func:`load`, with the files that it was made of."""
    path = Path(file)
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigFileError((Problem(str(file), 0, "", f"cannot be read: {error.strerror}"),)) from error
    except UnicodeDecodeError as error:
        raise ConfigFileError((Problem(str(file), 0, "", f"is not UTF-8: {error}"),)) from error
    return _parsed(text, str(file), os.environ if environment is None else environment)


def parse(text: str, file: str = "gateway.toml", *, environment: Mapping[str, str]) -> Config:
    """As :func:`load`, of a text; ``file`` is its name and where paths in it start."""
    return _parsed(text, file, environment).config


def _parsed(text: str, file: str, environment: Mapping[str, str]) -> Loaded:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        line = int(found[1]) if found and found[1] else len(text.splitlines())
        raise ConfigFileError((Problem(file, line, "", _AT.sub("", str(error))),)) from error
    reader = _Reader(Path(file).parent, environment)
    config = reader.struct(Config, table, ())
    found_wrong = list(reader.complaints)
    if config is not None:
        config = completed(config)
        found_wrong += complaints(config)
    if found_wrong or config is None:
        raise ConfigFileError(_located(found_wrong, places.key_lines(text), file))
    return Loaded(config, stamps((file, *reader.files, *files_of(config))))


def _located(found: list[Complaint], lines: dict[Place, int], file: str) -> tuple[Problem, ...]:
    problems = {Problem(file, places.line_of(lines, path), _dotted(path), text) for path, text in found}
    return tuple(sorted(problems, key=lambda one: one[1:]))


def _dotted(path: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


class _Bad:
    """Stands for a value that could not be read."""


_BAD = _Bad()


class _Reader:
    """Reads tables into structs and keeps what it has to complain of."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self.complaints: list[Complaint] = []
        self.files: list[str] = []

    def _wrong(self, path: Place, text: str) -> _Bad:
        self.complaints.append((path, text))
        return _BAD

    def struct(self, kind: type[S], table: object, path: Place) -> S | None:
        """A table as a struct; None if one of its required keys is not to be had."""
        if not isinstance(table, dict):
            self._wrong(path, f"must be a table, not {_named(table)}")
            return None
        fields = {field.name: field for field in structs.fields(kind)}
        for key in table.keys() - fields.keys():
            self._wrong((*path, key), f"unknown key{_meant(key, list(fields))}")
        values: dict[str, Any] = {}
        for name, field in fields.items():
            if name in table:
                values[name] = self._value(field.type, table[name], (*path, name))
            elif field.required:
                values[name] = self._wrong(path, f"{name} is missing")
        lacking = [name for name, field in fields.items() if field.required and values[name] is _BAD]
        good = {name: value for name, value in values.items() if value is not _BAD}
        return None if lacking else kind(**good)

    def _value(self, kind: Any, value: object, path: Place) -> object:
        if get_origin(kind) is UnionType or NoneType in get_args(kind):
            kinds = [one for one in get_args(kind) if one is not NoneType]
            if len(kinds) > 1:
                return self._plain(kind, value, path)
            kind = kinds[0]
        if kind is Secret:
            return self._secret(value, path)
        if kind is FilePath:
            return self._file(value, path)
        if isinstance(kind, type) and issubclass(kind, Struct):
            found = self.struct(kind, value, path)
            return _BAD if found is None else found
        item = next(iter(get_args(kind)), None)
        if get_origin(kind) is dict:
            return self._secrets(value, path)
        if get_origin(kind) is tuple and isinstance(item, type) and issubclass(item, Struct):
            return self._structs(item, value, path)
        return self._plain(kind, value, path)

    def _plain(self, kind: Any, value: object, path: Place) -> object:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            text, _, where = str(error).partition(" - at `$")
            return self._wrong(path, text.replace("`", "") + (f" in {where.strip('`')}" if where else ""))

    def _structs(self, kind: type[Struct], value: object, path: Place) -> object:
        if not isinstance(value, list) or not value:
            return self._wrong(path, f"must be one [[{path[-1]}]] or more")
        found = [self.struct(kind, one, (*path, place)) for place, one in enumerate(value)]
        return _BAD if None in found else tuple(found)

    def _secrets(self, value: object, path: Place) -> object:
        if not isinstance(value, dict):
            return self._wrong(path, f"must be a table of names and values, not {_named(value)}")
        found = {name: self._secret(one, (*path, name)) for name, one in value.items()}
        return {name: one for name, one in found.items() if one is not _BAD}

    def _secret(self, value: object, path: Place) -> object:
        if isinstance(value, str):
            return Secret(value, clear=True)
        if not isinstance(value, dict) or len(value) != 1 or not isinstance(source := next(iter(value.values())), str):
            return self._wrong(path, 'must be { env = "NAME" } or { file = "path" }')
        key = next(iter(value))
        if key == "env":
            return self._from_environment(source, path)
        if key == "file":
            return self._from_file(source, path)
        return self._wrong((*path, key), f"unknown key{_meant(key, ['env', 'file'])}")

    def _from_environment(self, name: str, path: Place) -> object:
        found = self._environment.get(name, "").strip()
        return Secret(found) if found else self._wrong(path, f"the environment has no {name}")

    def _from_file(self, name: str, path: Place) -> object:
        self.files.append(str(self._folder / name))
        try:
            found = (self._folder / name).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            return self._wrong(path, f"the file {name} cannot be read: {reason}")
        return Secret(found) if found else self._wrong(path, f"the file {name} is empty")

    def _file(self, value: object, path: Place) -> object:
        if not isinstance(value, str) or not value:
            return self._wrong(path, f"must be the path of a file, not {_named(value)}")
        place = self._folder / value
        return FilePath(str(place)) if place.is_file() else self._wrong(path, f"there is no file {value}")


def _named(value: object) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "a table"}
    return names.get(type(value), "a date")


def _meant(key: str, names: list[str]) -> str:
    near = get_close_matches(key.lower().replace("-", "_"), names, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; the keys here are {', '.join(names)}"
