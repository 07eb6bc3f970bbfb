"""The outbound-address guard: whether a URL that a stranger chose may be called, and at which address.

Rules of this module:

- The decision falls on addresses, when the connection is made: the host is resolved, every address that it has is
  judged, and the caller connects to one of the judged addresses and to nothing else. A name that resolves otherwise
  a moment later (DNS rebinding) gains nothing. One address that is refused refuses the host.
- :data:`BLOCKED` is the whole policy for IPv4 and IPv6. Beyond it IPv6 is called only in 2000::/3, the global unicast
  space. An IPv4 address inside of an IPv6 one (mapped, translated, NAT64, 6to4) is judged as what it is.
- A URL that two readers could read differently is refused: what is not plain ASCII, userinfo, a backslash, an
  escaped host, a trailing dot, an IPv4 address in anything but four decimal numbers, a zone.
- What the operator allows by name or network passes. Whoever dials follows no redirect and uses no proxy.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from ..errors import ConfigError, DragomanError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
#: Gives the addresses of a host as texts; raises ``OSError`` if it has none.
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

#: Network, what it is, and whether :attr:`Guard.private` lets it pass. The first row that fits counts.
BLOCKED: tuple[tuple[Network, str, bool], ...] = tuple(
    (ip_network(network), what, private)
    for network, what, private in (
        ("168.63.129.16/32", "a cloud metadata service", False),  # Azure
        ("192.0.0.192/32", "a cloud metadata service", False),  # Oracle
        ("100.100.100.200/32", "a cloud metadata service", False),  # Alibaba
        ("169.254.0.0/16", "link-local, where cloud metadata services are", False),
        ("0.0.0.0/8", "unspecified", False),
        ("10.0.0.0/8", "private", True),
        ("100.64.0.0/10", "shared address space of a carrier", True),
        ("127.0.0.0/8", "loopback", True),
        ("172.16.0.0/12", "private", True),
        ("192.0.0.0/24", "reserved", False),
        ("192.0.2.0/24", "documentation", False),
        ("192.88.99.0/24", "a 6to4 relay", False),
        ("192.168.0.0/16", "private", True),
        ("198.18.0.0/15", "a benchmark network", True),
        ("198.51.100.0/24", "documentation", False),
        ("203.0.113.0/24", "documentation", False),
        ("224.0.0.0/4", "multicast", False),
        ("240.0.0.0/4", "reserved", False),
        ("fd00:ec2::/32", "a cloud metadata service", False),  # Amazon
        ("fd20:ce::254/128", "a cloud metadata service", False),  # Google
        ("::/128", "unspecified", False),
        ("::1/128", "loopback", True),
        ("fc00::/7", "private", True),
        ("fe80::/10", "link-local", False),
        ("ff00::/8", "multicast", False),
        ("2001::/23", "reserved", False),  # Teredo among others
        ("2001:db8::/32", "documentation", False),
        ("3fff::/20", "documentation", False),
    )
)
#: Names that metadata services have, whatever they resolve to.
METADATA_HOSTS = frozenset(
    ("metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal")
)
_GLOBAL6 = IPv6Network("2000::/3")
#: IPv6 networks that hold an IPv4 address, and how many bits stand behind it.
_EMBEDDING = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated (SIIT)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)
_VISIBLE = re.compile(r"[!-\[\]-~]+")  # ASCII without space, controls and the backslash
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"([0-9]+|0x[0-9a-f]*)")
_PORTS = {"http": 80, "https": 443}


class TargetRefused(DragomanError):
    """Raised for a URL that may not be called; its text says why and can be shown to whoever chose the URL."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart: ``host`` in lower case, without brackets; ``address`` if it is one."""

    url: str
    scheme: str
    host: str
    port: int
    address: Address | None


@dataclass(frozen=True, slots=True)
class Checked:
    """A target that may be called, at one of ``addresses`` and nowhere else."""

    target: Target
    addresses: tuple[Address, ...]


def read_target(url: str) -> Target:
    """Take a URL apart. Raises ``TargetRefused`` unless it is plain http or https and can be read in one way only."""
    if len(url) > 2048 or not _VISIBLE.fullmatch(url):
        raise TargetRefused("must be a URL of at most 2048 characters, in ASCII without spaces and backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TargetRefused("is not a URL") from None
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").lower()
    if scheme not in _PORTS or not host or not url[len(scheme) :].startswith("://"):
        raise TargetRefused("must be an http or https URL")
    if "@" in parts.netloc:
        raise TargetRefused("must not contain a user name or password")
    if port == 0:
        raise TargetRefused("must not name port 0")
    return Target(url, scheme, host, port or _PORTS[scheme], _literal(host, parts.netloc.startswith("[")))


def _literal(host: str, bracketed: bool) -> Address | None:
    """The address that a host is, None for a name. Raises ``TargetRefused``."""
    if bracketed:
        try:
            return IPv6Address(_unscoped(host))
        except ValueError:
            raise TargetRefused("has a host that is no IPv6 address") from None
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise TargetRefused("has a host that is neither a plain name nor an address")
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    try:
        return IPv4Address(host)  # four decimal numbers without leading zeros
    except ValueError:
        raise TargetRefused("has a host that is an IPv4 address in an unusual spelling") from None


def _unscoped(text: str) -> str:
    if "%" in text:
        raise TargetRefused("has an address with a zone")
    return text


def embedded(address: Address) -> Address:
    """The IPv4 address inside of an IPv6 one, or the address itself."""
    if isinstance(address, IPv6Address):
        for network, behind in _EMBEDDING:
            if address in network:
                return IPv4Address(int(address) >> behind & 0xFFFFFFFF)
    return address


#: Names that answered before, of which the last are remembered.
_REMEMBERED = 10_000


class SystemResolver:
    """Looks hosts up as the operating system does, in threads of its own.

    A name server that a stranger chose may not answer. So a name is looked up once at a time, whoever asks for it; one
    that takes longer than ``patience`` seconds is *unknown* to everybody until it answers; and names that answered
    before have threads that no new name can take. ``look``: instead of ``socket.getaddrinfo``, for tests.
    """

    def __init__(
        self, threads: int = 8, *, patience: float = 5.0, look: Callable[..., Any] = socket.getaddrinfo
    ) -> None:
        self._new = ThreadPoolExecutor(threads, thread_name_prefix="resolve-new")
        self._known = ThreadPoolExecutor(threads, thread_name_prefix="resolve")
        self._look = look
        self._patience = patience
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._under_way: dict[tuple[str, int], asyncio.Future[Any]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host. Raises ``OSError``, also for a host whose name server does not answer."""
        loop, key = asyncio.get_running_loop(), (host, port)
        looking = self._under_way.get(key)
        if looking is None:
            pool = self._known if host in self._answered else self._new
            looking = loop.run_in_executor(pool, partial(self._look, host, port, type=socket.SOCK_STREAM))
            self._under_way[key] = looking
            looking.add_done_callback(lambda done: self._over(key, done))
        done, _ = await asyncio.wait((looking,), timeout=self._patience)
        if not done:
            raise OSError(f"no name server answers for {host}")
        return [str(entry[4][0]) for entry in looking.result()]

    def _over(self, key: tuple[str, int], done: asyncio.Future[Any]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._answered[key[0]] = None
            self._answered.move_to_end(key[0])
            if len(self._answered) > _REMEMBERED:
                self._answered.popitem(last=False)


class Guard:
    """Decides which URLs chosen by strangers may be called.

    ``allow``: what always passes: host names, ``.suffix`` for all names below one, addresses and networks. ``only``:
    nothing else passes. ``private``: private and loopback addresses pass too, for tests and closed networks;
    metadata services and link-local addresses do not. ``https``: plain http is refused. ``resolver``: how a host is
    looked up, default :class:`SystemResolver`. Raises ``ConfigError`` for an entry of ``allow`` that is none of these.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        only: bool = False,
        private: bool = False,
        https: bool = False,
        resolver: Resolve | None = None,
    ) -> None:
        entries = [entry.strip().lower() for entry in allow]
        self._networks = tuple(network for entry in entries if (network := _network(entry)) is not None)
        names = [entry for entry in entries if _network(entry) is None]
        for name in names:
            if not _NAME.fullmatch(name.removeprefix(".")):
                raise ConfigError(f"{name!r} is no host, .suffix, address or network that could be allowed")
        self._names = frozenset(name for name in names if not name.startswith("."))
        self._suffixes = tuple(name for name in names if name.startswith("."))
        self._only = only
        self._private = private
        self._https = https
        self._resolve = resolver or SystemResolver()

    def read(self, url: str) -> Target:
        """All that a URL tells without being resolved. Raises ``TargetRefused``."""
        target = read_target(url)
        if self._https and target.scheme != "https":
            raise TargetRefused("must be an https URL")
        if target.address is not None:
            self._accept(target, target.address)
        elif not self._names_allow(target.host):
            if target.host in METADATA_HOSTS:
                raise TargetRefused("is a cloud metadata service")
            if target.host.endswith((".localhost", "localhost.localdomain")) or target.host == "localhost":
                self._accept(target, IPv4Address("127.0.0.1"))
        return target

    async def check(self, url: str) -> Checked:
        """Resolve and judge. Raises ``TargetRefused``, and ``OSError`` if the host cannot be resolved."""
        target = self.read(url)
        if target.address is not None:
            return Checked(target, (target.address,))
        texts = await self._resolve(target.host, target.port)
        addresses = tuple(dict.fromkeys(ip_address(_unscoped(text)) for text in texts))
        if not addresses:
            raise OSError(f"{target.host} has no address")
        for address in addresses:
            self._accept(target, address)
        return Checked(target, addresses)

    def judge(self, address: Address, host: str = "") -> str:
        """Why an address may not be called under this host name; empty if it may."""
        if self._names_allow(host):
            return ""
        address = embedded(address)
        if any(address in network for network in self._networks):
            return ""
        if self._only:
            return "not on the list of what may be called"
        for network, what, private in BLOCKED:
            if address in network:
                return "" if private and self._private else what
        return "" if isinstance(address, IPv4Address) or address in _GLOBAL6 else "not a global address"

    def _accept(self, target: Target, address: Address) -> None:
        why = self.judge(address, target.host)
        if why and target.address is not None:
            raise TargetRefused(f"is an address that may not be called: {why}")
        if why:  # what names lead to inside of our network is not for strangers
            raise TargetRefused("leads to an address that may not be called")

    def _names_allow(self, host: str) -> bool:
        return host in self._names or (bool(self._suffixes) and host.endswith(self._suffixes))


def _network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
