"""Names in JSON trees."""

from __future__ import annotations

from typing import Any

#: Keys whose values are free, or whose keys are names that somebody chose.
FREE = frozenset({"metadata", "data", "params", "header", "scopes", "schemes"})


def camelised(value: Any, keep: tuple[str, ...] = ()) -> Any:
    """A copy of ``value`` with snake_case keys in camelCase, free JSON and the values of ``keep`` left as they are.

    Of two keys that come out the same, the one that was right already counts.
    """
    if type(value) is list:
        return [camelised(item, keep) for item in value]
    if type(value) is not dict:
        return value
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = _camel(key)
        if name == key or name not in value:
            out[name] = item if name in FREE or name in keep else camelised(item, keep)
    return out


def _camel(key: str) -> str:
    head, *words = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in words)
