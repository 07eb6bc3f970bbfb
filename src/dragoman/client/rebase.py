"""Which url of an interface to call, when the card's cannot be right.

Rules of this module:

- The card's url is the one to call. It is changed only where it cannot be right as seen from the url that the caller
  gave: an address that nobody can call, one of a private network while the caller reached a public one, a name that
  exists only inside a container network, or plain HTTP where TLS ends at a proxy.
- Then it gets the origin that the caller gave; over gRPC, which often has a port of its own, only the host.
- Whoever changes a url says so.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit

from ..protocol.operations import Binding

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}
_SECURE = frozenset(("https", "grpcs"))
#: Endings of names that only a private network resolves.
_INTERNAL = (".internal", ".local", ".localdomain", ".svc", ".cluster.local", ".lan", ".home.arpa")
_SHARED = ipaddress.ip_network("100.64.0.0/10")


class Rebased(NamedTuple):
    """The url to call, and why it is not the card's; empty if it is."""

    url: str
    why: str = ""


def origin(url: str) -> str:
    """Scheme, host and port of a url, always in the same form: ``https://agent.example:443``.

    gRPC's schemes count as the HTTP ones that they equal.
    """
    parts = urlsplit(url)
    scheme = {"grpc": "http", "grpcs": "https"}.get(parts.scheme.lower(), parts.scheme.lower())
    try:
        port = parts.port
    except ValueError:
        port = None
    return f"{scheme}://{(parts.hostname or '').lower()}:{port or _DEFAULT_PORTS.get(scheme, 0)}"


def rebase(url: str, binding: Binding, given: str, card_url: str = "") -> Rebased:
    """The url of an interface as seen by a caller who was given ``given`` and found the card at ``card_url``."""
    url = url.strip()
    if binding == "GRPC" and "://" not in url:
        url = f"{_bare_scheme(url, given)}://{url}"
    elif not urlsplit(url).netloc:
        return Rebased(urljoin(card_url or given, url), "it is relative")
    there, here = urlsplit(url), urlsplit(given)
    if not here.hostname:
        return Rebased(url)
    why = _wrong(there, here)
    if not why:
        return Rebased(url)
    return Rebased(_moved(there, here, binding), why)


def _bare_scheme(url: str, given: str) -> str:
    """A bare ``host:port`` has TLS as the card had it; unknown, it has unless it is this machine's own."""
    secure = urlsplit(given).scheme == "https" if given else not _is_loopback(urlsplit(f"//{url}").hostname or "")
    return "grpcs" if secure else "grpc"


def _wrong(there: SplitResult, here: SplitResult) -> str:
    """Why the card's url cannot be right; empty if it can."""
    theirs, ours = (there.hostname or "").lower(), (here.hostname or "").lower()
    if theirs == ours:
        downgrade = here.scheme == "https" and there.scheme.lower() not in _SECURE
        return "it is plain text where the card came over TLS" if downgrade else ""
    address = _address(theirs)
    if address is not None and address.is_unspecified:
        return "it is an address to listen on, not one to call"
    if (_is_loopback(theirs) and not _is_loopback(ours)) or (_is_private(theirs) and not _is_private(ours)):
        return "it is an address of a private network, and the card came from outside of it"
    if address is None and _is_container(theirs) and not _is_container(ours):
        return "it is a name inside of a container network"
    return ""


def _moved(there: SplitResult, here: SplitResult, binding: Binding) -> str:
    secure = here.scheme == "https"
    if binding == "GRPC" and there.port is not None and there.hostname != here.hostname:
        host = here.netloc.rpartition("@")[2]
        host = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        return there._replace(netloc=f"{host}:{there.port}").geturl()
    scheme = {True: "grpcs", False: "grpc"}[secure] if there.scheme.startswith("grpc") else here.scheme
    return there._replace(scheme=scheme, netloc=here.netloc.rpartition("@")[2]).geturl()


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost" or host.endswith(".localhost")


def _is_private(host: str) -> bool:
    """Whether a host is of a private network, as far as its name tells."""
    address = _address(host)
    if address is None:
        return _is_loopback(host) or _is_container(host) or host.endswith(_INTERNAL)
    shared = address.version == 4 and address in _SHARED
    return address.is_private or address.is_link_local or address.is_loopback or shared


def _is_container(host: str) -> bool:
    """Whether a name looks like one that Compose or Kubernetes gives: one label, or a service's internal name."""
    return _address(host) is None and not _is_loopback(host) and ("." not in host or host.endswith(_INTERNAL))
