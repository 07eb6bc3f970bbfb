"""What the values of a configuration may be, alone and together.

Rules of this module:

- A complaint is a path into the configuration and a text; nothing is raised, so that all of them are told.
- Two upstreams never share a name, a path, an authority or a port: a caller must not reach the wrong agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from ...client.hybrids import HYBRIDS
from ...client.remote import sendable
from ...dialects.losses import REFUSABLE
from ...errors import ConfigError
from ...faces import Face, read_binding, read_version
from ...protocol.operations import BINDINGS, VERSIONS
from ...server.origin import checked_url, trusted_networks
from ..forwarding import NEVER
from .auth_checks import wrong, wrong_cors
from .keeping_checks import wrong_relay, wrong_store
from .observing import wrong_observe
from .server import Server
from .upstream import Upstream
from .values import Place, Said, Secret, meant
from .whole import Config

Complaint = tuple[Place, str]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TELLING = ("auth", "cookie", "key", "token", "secret", "password", "credential")
#: First path segments that mean something else to an agent at the root (1.0 §11.3, 0.3 §3.5.3).
OF_THE_ROOT = frozenset({"v1", "tasks", "message:send", "message:stream", "extendedAgentCard"})


def complaints(config: Config) -> list[Complaint]:
    """Everything that is wrong with a configuration whose types are right already."""
    found = [(("server", *path), text) for path, text in _server(config.server)]
    for place, one in enumerate(config.upstream):
        told = (*_upstream(one), *_clear(one, config.allow_clear_secrets))
        found += [(("upstream", place, *path), text) for path, text in told]
    beside = (_callers(config), _observed(config), _kept(config), _together(config))
    return found + [one for several in beside for one in several]


def _callers(config: Config) -> Iterator[Complaint]:
    tls, names = config.server.tls, [one.name for one in config.upstream]
    if config.auth is not None:
        client_ca, clear = tls is not None and tls.client_ca is not None, config.allow_clear_secrets
        for path, text in wrong(config.auth, names, client_ca=client_ca, clear=clear):
            yield ("auth", *path), text
    if config.cors is not None:
        for path, text in wrong_cors(config.cors):
            yield ("cors", *path), text


def _observed(config: Config) -> Iterator[Complaint]:
    for path, text in wrong_observe(config.observe, config.server, config.upstream):
        yield ("observe", *path), text


def _kept(config: Config) -> Iterator[Complaint]:
    for path, text in wrong_store(config.store, clear=config.allow_clear_secrets):
        yield ("store", *path), text
    for path, text in wrong_relay(config.relay):
        yield ("relay", *path), text


def _raised(path: Place, check: Callable[[], object]) -> Said:
    try:
        check()
    except (ConfigError, ValueError) as error:
        yield path, str(error)


def _server(server: Server) -> Said:
    yield from _raised(("public_url",), lambda: checked_url(server.public_url))
    yield from _raised(("trusted_proxies",), lambda: trusted_networks(server.trusted_proxies))
    if server.tls and server.tls.require_client_cert and server.tls.client_ca is None:
        yield ("tls", "require_client_cert"), "needs client_ca, the roots to check against"


def _upstream(one: Upstream) -> Said:
    yield from _url(one)
    yield from _raised(("public_url",), lambda: checked_url(one.public_url))
    if not _NAME.fullmatch(one.name):
        yield ("name",), f"{one.name!r} is no name: letters, digits and . _ - only"
    if not _PATH.fullmatch(one.path):
        yield ("path",), f"{one.path!r} is no path: write /segment, of letters, digits and . _ ~ - only"
    if one.path.startswith("/.well-known"):
        yield ("path",), "/.well-known is where cards are"
    if one.authority and not _AUTHORITY.fullmatch(one.authority):
        yield ("authority",), f"{one.authority!r} is no host name"
    if one.tenant and not _NAME.fullmatch(one.tenant):
        yield ("tenant",), f"{one.tenant!r} is no tenant: letters, digits and . _ - only"
    yield from _replicas(one)
    yield from _faces(one)
    if one.dialect and one.dialect not in HYBRIDS:
        yield ("dialect",), f"{one.dialect!r} is no hybrid that is known{meant(one.dialect, HYBRIDS)}"
    for name in one.refuse_losses:
        if name not in REFUSABLE:
            yield ("refuse_losses",), f"{name!r} is no loss that can be refused{meant(name, sorted(REFUSABLE))}"
    yield from _sent(one)
    if one.polling.first > one.polling.most:
        yield ("polling", "first"), f"{one.polling.first:g} is more than most, {one.polling.most:g}"


def _url(one: Upstream) -> Said:
    yield from _an_url("url", one.url)


def _replicas(one: Upstream) -> Said:
    for url in one.replicas:
        yield from _an_url("replicas", url)
    if len({one.url, *one.replicas}) <= len(one.replicas):
        yield ("replicas",), "name an url twice: they are those besides url"


def _an_url(key: str, url: str) -> Said:
    try:
        parts = urlsplit(url.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        yield (key,), f"{url!r} is not the url of an agent: it must begin with http:// or https://"
    elif parts.username or parts.password:
        yield (key,), "credentials do not belong into a url: use bearer or headers"


def _faces(one: Upstream) -> Said:
    if one.face:
        yield from _raised(("face",), lambda: Face.parse(one.face))
    for text in one.versions:
        if read_version(text) is None or not text:
            yield ("versions",), f"{text!r} is not one of {', '.join(VERSIONS)}"
    for text in one.bindings:
        if read_binding(text) is None:
            yield ("bindings",), f"{text!r} is not one of {', '.join(BINDINGS)}"
        elif read_binding(text) == "GRPC" and not any(face.binding == "GRPC" for face in one.faces):
            yield ("bindings",), "gRPC of 0.3 has neither paths nor tenants: give this upstream an authority or a port"


def _sent(one: Upstream) -> Said:
    for name in one.forward:
        if not _TOKEN.fullmatch(name):
            yield ("forward",), f"{name!r} is no header name"
        elif name.lower().encode() in NEVER:
            yield ("forward",), f"{name} belongs to each connection and is not forwarded"
    for name, secret in one.headers.items():
        if not _TOKEN.fullmatch(name):
            yield ("headers", name), "is no header name"
        elif name.lower().encode() in NEVER:
            yield ("headers", name), "is written by the gateway itself"
        elif not _fits(secret):
            yield ("headers", name), "has a value that cannot be sent: it must be one line of ASCII"
    if one.bearer is not None and not _fits(one.bearer):
        yield ("bearer",), "cannot be sent: it must be one line of ASCII"
    if one.bearer is not None and any(name.lower() == "authorization" for name in one.headers):
        yield ("bearer",), "and headers.authorization are two credentials for one field"
    if (one.tls.cert is None) != (one.tls.key is None):
        yield ("tls",), "a certificate needs its key: give both cert and key"


def _fits(secret: Secret) -> bool:
    try:
        sendable({"x": secret.value})
    except ConfigError:
        return False
    return True


def _clear(one: Upstream, allowed: bool) -> Said:
    """Secrets in the file itself; a header is one if its name says so."""
    if allowed:
        return
    cure = 'stands in clear: use { env = "NAME" } or { file = "path" }, or set allow_clear_secrets = true'
    if one.bearer is not None and one.bearer.clear:
        yield ("bearer",), cure
    for name, secret in one.headers.items():
        if secret.clear and any(word in name.lower() for word in _TELLING):
            yield ("headers", name), cure


def _together(config: Config) -> Iterator[Complaint]:
    several = config.upstream
    yield from _twice("name", (one.name for one in several))
    yield from _twice("path", (one.path for one in several))
    yield from _twice("authority", (one.authority.lower() for one in several))
    yield from _twice("tenant", (one.tenant for one in several))
    yield from _twice("port", (str(one.port or "") for one in several))
    rooted = any(one.path == "/" for one in several)
    for place, one in enumerate(several):
        if one.port and one.port == config.server.port:
            yield ("upstream", place, "port"), f"{one.port} is the port that all upstreams share"
        if rooted and one.path.split("/")[1] in OF_THE_ROOT:
            yield ("upstream", place, "path"), f"{one.path} means something to the agent at / already"


def _twice(key: str, values: Iterable[str]) -> Iterator[Complaint]:
    first: dict[str, int] = {}
    for place, value in enumerate(values):
        if value and first.setdefault(value, place) != place:
            yield ("upstream", place, key), f"{value} is taken by upstream[{first[value]}]"
