"""What an operator writes into ``gateway.toml``, as frozen structs; and what is wrong with it, all at once.

Rules of this module:

- A field of a struct is a key of the file: there is no other table of keys. An unknown key is an error.
- Every problem names file, line and key, and none hides another: reading goes on after it.
- A secret comes from the environment or from a file. In the configuration itself it may stand only if
  ``allow_clear_secrets`` says so, and it is never shown.
- Paths of files are relative to the configuration's own.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct, structs

from ..faces import ALL_FACES, Face, read_binding, read_version

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
OwnPort = Annotated[int, Meta(ge=1, le=65_535)]


class Secret(Struct, frozen=True):
    """A text that is not shown. ``clear``: it stands in the configuration itself."""

    value: str
    clear: bool = False

    def __repr__(self) -> str:
        return "Secret(...)"


class FilePath(Struct, frozen=True):
    """A file, its path made absolute or relative to where the process runs."""

    path: str


class ServerTls(Struct, frozen=True, kw_only=True):
    """PEM files to serve TLS with; ``client_ca`` checks the certificates of callers."""

    cert: FilePath
    key: FilePath
    client_ca: FilePath | None = None
    require_client_cert: bool = False


class Server(Struct, frozen=True, kw_only=True):
    """Where the gateway listens. ``public_url``: where callers reach it, else told from each request."""

    host: str = "127.0.0.1"
    port: Port = 8000
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    health: bool = False
    reflection: bool = False
    tls: ServerTls | None = None


class UpstreamTimeouts(Struct, frozen=True, kw_only=True):
    """Seconds, as in ``dragoman.client.options.Timeouts``."""

    connect: Seconds = 5.0
    reply: Seconds = 60.0
    silence: Seconds = 60.0


class UpstreamTls(Struct, frozen=True, kw_only=True):
    """PEM files: roots to trust besides the usual ones, our own certificate and its key."""

    ca: FilePath | None = None
    cert: FilePath | None = None
    key: FilePath | None = None
    verify: bool = True


class Upstream(Struct, frozen=True, kw_only=True):
    """One agent behind the gateway.

    ``url``: its base, or that of its card. ``name``: default told from the url. ``path``: where its HTTP faces are
    served, default ``/`` if it is the only one, else ``/name``. ``face``: the one to call, such as ``0.3/JSONRPC``,
    else the best of its card. ``versions``, ``bindings``: what is served, default all. ``authority``: host name under
    which its gRPC is served on the shared port. ``port``: a port that serves it alone. ``forward``: further header
    fields of callers that go on. ``headers``, ``bearer``: sent with every call. ``base64_files``: callers keep base64
    text in the bytes of a 0.3 file; ``upstream_base64_files``: the agent does. ``lenient``: read replies that break
    the specification but can be understood. ``strict``: a request that names no version is 0.3, whatever its method.
    """

    url: str
    name: str = ""
    path: str = ""
    public_url: str = ""
    authority: str = ""
    port: OwnPort | None = None
    face: str = ""
    versions: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
    headers: dict[str, Secret] = {}
    bearer: Secret | None = None
    timeouts: UpstreamTimeouts = UpstreamTimeouts()
    tls: UpstreamTls = UpstreamTls()
    base64_files: bool = False
    upstream_base64_files: bool = False
    lenient: bool = True
    strict: bool = False

    @property
    def pin(self) -> Face | None:
        """The face to call, None if the card decides."""
        return Face.parse(self.face) if self.face else None

    @property
    def grpc_has_place(self) -> bool:
        """Whether gRPC can tell this agent from others: it has no paths, so only by host, by port, or at the root."""
        return bool(self.authority or self.port or self.path == "/")

    @property
    def faces(self) -> tuple[Face, ...]:
        """The faces that are served."""
        versions = {read_version(text) for text in self.versions} or {face.version for face in ALL_FACES}
        bindings = {read_binding(text) for text in self.bindings} or {face.binding for face in ALL_FACES}
        served = (face for face in ALL_FACES if face.version in versions and face.binding in bindings)
        return tuple(face for face in served if face.binding != "GRPC" or self.grpc_has_place)

    def grpc_target(self, base: str) -> str:
        """``host:port`` of its gRPC for a caller who reaches its other faces at ``base``."""
        parts = urlsplit(base)
        port = self.port or parts.port or (443 if parts.scheme == "https" else 80)
        host = self.authority or parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}")
        return host if _has_port(host) else f"{host}:{port}"


class Config(Struct, frozen=True, kw_only=True):
    """A whole ``gateway.toml``; names and paths of its upstreams are filled in."""

    upstream: tuple[Upstream, ...]
    server: Server = Server()
    allow_clear_secrets: bool = False


def completed(config: Config) -> Config:
    """The configuration with a name and a path for every upstream that was given none."""
    alone = len(config.upstream) == 1
    taken = {one.name for one in config.upstream if one.name}
    filled: list[Upstream] = []
    for one in config.upstream:
        name = one.name or _free_name(name_of(one.url), taken)
        taken.add(name)
        path = one.path.rstrip("/") or ("/" if one.path or alone else f"/{name}")
        filled.append(structs.replace(one, name=name, path=path))
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


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
