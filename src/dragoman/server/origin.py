"""Under which URL the caller reaches us: configured, told by a trusted proxy, or the host that it asked for.

Rules of this module:

- A configured public URL always wins.
- ``Forwarded`` (RFC 7239) and ``X-Forwarded-*`` count only if the direct peer is a trusted proxy; the first value
  of a list is the one nearest to the caller.
- A prefix that a proxy has taken off and that our host has put back into the mount point counts once.
- A host that is no host (bad characters, unspecified address) is never repeated: the address that the connection
  came to stands in.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import ConfigError
from ..protocol.messages import Headers

_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253})|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]+)*")
_UNSPECIFIED = ("0.0.0.0", "[::]")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Forwarding(NamedTuple):
    """What a proxy says about the caller's side; empty texts where it says nothing."""

    scheme: str = ""
    host: str = ""
    prefix: str = ""


def trusted_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse addresses and networks of proxies. Raises ``ConfigError`` naming the text that is neither."""
    try:
        return tuple(ipaddress.ip_network(text, strict=False) for text in texts)
    except ValueError as error:
        raise ConfigError(f"A trusted proxy is named by its address or network: {error}") from None


def checked_url(url: str) -> str:
    """A configured public URL, or an empty text. Raises ``ConfigError`` if callers could not use it."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise ConfigError(f"The public URL {url!r} must be http:// or https://, a host, and perhaps a path")
    return url


def base_url(scope: Mapping[str, Any], headers: Headers, public_url: str, trusted: tuple[Network, ...]) -> str:
    """The URL of the app's root without a trailing slash."""
    if public_url:
        return public_url.rstrip("/")
    told = _forwarding(headers) if trusted and _from_proxy(scope, trusted) else Forwarding()
    scheme = told.scheme if told.scheme in ("http", "https") else scope.get("scheme", "http")
    host = _valid_host(told.host) or _valid_host(headers.text("host")) or _own_host(scope)
    root: str = scope.get("root_path", "")
    prefix = told.prefix if _PREFIX.fullmatch(told.prefix) and not f"{root}/".startswith(told.prefix + "/") else ""
    return f"{scheme}://{host}{prefix}{root}".rstrip("/")


def _from_proxy(scope: Mapping[str, Any], trusted: tuple[Network, ...]) -> bool:
    client = scope.get("client")
    if not client:
        return False
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return False
    return any(address in network for network in trusted if network.version == address.version)


def _forwarding(headers: Headers) -> Forwarding:
    standard = headers.text("forwarded")
    if standard:
        pairs = (pair.partition("=") for pair in standard.split(",")[0].split(";"))
        fields = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        return Forwarding(fields.get("proto", "").lower(), fields.get("host", ""))
    first = [headers.text(f"x-forwarded-{name}").split(",")[0].strip() for name in ("proto", "host", "prefix", "port")]
    scheme, host, prefix, port = first
    if host and port and ":" not in host.rpartition("]")[2] and port not in ("80", "443"):
        host = f"{host}:{port}"
    return Forwarding(scheme.lower(), host, prefix.rstrip("/"))


def _valid_host(host: str) -> str:
    return host if _HOST.fullmatch(host) and not host.startswith(_UNSPECIFIED) else ""


def _own_host(scope: Mapping[str, Any]) -> str:
    host, port = scope.get("server") or ("localhost", None)
    if host in ("0.0.0.0", "::", ""):
        host = "localhost"
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown
