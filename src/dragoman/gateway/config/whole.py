"""A whole ``gateway.toml`` as frozen structs.

Rules of this package:

- A field of a struct is a key of the file: there is no other table of keys. An unknown key is an error.
- Every problem names file, line and key, and none hides another: reading goes on after it.
- Paths of files are relative to the configuration's own.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from msgspec import Struct, structs

from .auth import Auth, Cors
from .keeping import Relay, Store
from .observing import Observe
from .server import Server
from .upstream import Upstream


class Config(Struct, frozen=True, kw_only=True):
    """A whole ``gateway.toml``; names and paths of its upstreams are filled in."""

    upstream: tuple[Upstream, ...]
    server: Server = Server()
    auth: Auth | None = None
    cors: Cors | None = None
    store: Store = Store()
    relay: Relay = Relay()
    observe: Observe = Observe()
    allow_clear_secrets: bool = False


def completed(config: Config) -> Config:
    """The configuration with a name, a path, and where it needs one a tenant, for every upstream that has none."""
    alone = len(config.upstream) == 1
    taken = {one.name for one in config.upstream if one.name}
    filled: list[Upstream] = []
    for one in config.upstream:
        name = one.name or _free_name(name_of(one.url), taken)
        taken.add(name)
        path = one.path.rstrip("/") or ("/" if one.path or alone else f"/{name}")
        placed = one.authority or one.port or path == "/"
        filled.append(structs.replace(one, name=name, path=path, tenant=one.tenant or ("" if placed else name)))
    return structs.replace(config, upstream=tuple(filled))


def name_of(url: str) -> str:
    """A name for the agent at a url: the last part of its path, else the first of its host, with a port if it has."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "agent", parts.port
    except ValueError:
        return "agent"
    segments = [part for part in parts.path.split("/") if part and part[0] != "." and not part.endswith(".json")]
    if segments:
        return _slug(segments[-1])
    name = host if _is_address(host) else host.split(".")[0]
    return _slug(f"{name}-{port}" if port else name)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "agent"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}-{number}"
    return free
