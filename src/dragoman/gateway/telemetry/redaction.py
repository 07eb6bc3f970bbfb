"""Messages as they may be shown for debugging: secrets blotted out, files as their size, long texts cut.

Rules of this module:

- A key that speaks of a secret, token, key, password, credential, cookie or authorization is blotted out with
  everything below it, wherever it stands; so is the query of a URL, and who is named in it.
- What a person wrote into a text cannot be told from a secret: that is why messages are not logged by default.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

BLOT = "[redacted]"
#: Characters of a text that are shown, and entries of a list.
LONGEST, MOST = 500, 50
_TELLING = ("secret", "token", "key", "password", "passwd", "credential", "cookie", "auth", "signature")


def shown(message: Any) -> Any:
    """A message of the model as plain data that may be logged."""
    return _shown(msgspec.to_builtins(message, builtin_types=(bytes,)), 0)


def _shown(value: Any, depth: int) -> Any:
    if depth > 40:
        return "[deeper]"
    match value:
        case dict():
            return {key: BLOT if _tells(key) and one else _shown(one, depth + 1) for key, one in value.items()}
        case list() | tuple():
            items = [_shown(one, depth + 1) for one in value[:MOST]]
            return [*items, f"[{len(value) - MOST} more]"] if len(value) > MOST else items
        case bytes():
            return f"[{len(value)} bytes]"
        case str():
            return _text(value)
    return value


def _tells(key: object) -> bool:
    name = str(key).lower()
    return any(word in name for word in _TELLING)


def _text(text: str) -> str:
    if text[:8].lower().startswith(("http://", "https://")):
        text = _url(text)
    return f"{text[:LONGEST]}[{len(text) - LONGEST} more]" if len(text) > LONGEST else text


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    host = parts.netloc.rpartition("@")[2]
    who = f"{BLOT}@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, who + host, parts.path, BLOT if parts.query else "", parts.fragment))
