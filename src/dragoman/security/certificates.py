"""Client certificates: which caller a TLS connection belongs to.

Rules of this module:

- The chain was verified by whoever ended TLS (ASGI TLS extension); a certificate with an error is none.
- A rule that gives no name calls its caller after what matched, so that a whole fleet needs one rule.
- The first rule that fits counts. Names of hosts are compared in lower case. ``*`` matches across dots and slashes.
- A connection may outlive its certificate: one that is over verifies nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgspec import Struct

from ..errors import ConfigError

try:
    from cryptography import x509
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("Client certificates need the package cryptography: pip install dragoman[auth]") from error

_KEPT = 1_000


class CertificateRule(Struct, frozen=True, kw_only=True):
    """Whose certificate it is. ``subject``: glob over its RFC 4514 text; ``san``: over one of its alternative names
    (DNS, URI, email, address); both must match where both are given. ``name``: of the caller, else told from it."""

    name: str = ""
    subject: str = ""
    san: str = ""

    def caller(self, subject: str, names: tuple[str, ...]) -> str | None:
        """The caller's name, None if the rule does not fit."""
        if self.subject and not fnmatchcase(subject, self.subject):
            return None
        told = subject
        if self.san:
            found = next((name for name in names if fnmatchcase(name, self.san)), None)
            if found is None:
                return None
            told = found
        return self.name or (f"certificate#{told}" if told.isprintable() else None)


class _Judged(NamedTuple):
    name: str | None
    until: float


class Certificates:
    """Names by certificate. ``clock``: seconds since the epoch."""

    def __init__(self, rules: Iterable[CertificateRule], *, clock: Callable[[], float] = time.time) -> None:
        self._rules = tuple(rules)
        self._clock = clock
        self._judged: dict[str, _Judged] = {}

    def name_of(self, scope: Mapping[str, Any]) -> str | None:
        """The caller behind a request's connection, None without a certificate that a rule knows."""
        tls = scope.get("extensions", {}).get("tls")
        chain = tls.get("client_cert_chain") if tls else None
        if not chain or tls.get("client_cert_error"):
            return None
        pem: str = next(iter(chain))
        judged = self._judged.get(pem)
        if judged is None:
            judged = self._keep(pem, self._judge(pem))
        return judged.name if judged.until > self._clock() else None

    def _keep(self, pem: str, judged: _Judged) -> _Judged:
        self._judged[pem] = judged
        if len(self._judged) > _KEPT:
            del self._judged[next(iter(self._judged))]
        return judged

    def _judge(self, pem: str) -> _Judged:
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
            subject, names = certificate.subject.rfc4514_string(), tuple(_names(certificate))
        except ValueError:  # TLS took it, but it has fields that cannot be read
            return _Judged(None, 0)
        found = (rule.caller(subject, names) for rule in self._rules)
        return _Judged(next(filter(None, found), None), certificate.not_valid_after_utc.timestamp())


def _names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    for name in extension.value:
        if isinstance(name, x509.DNSName):
            yield name.value.lower()
        elif isinstance(name, x509.UniformResourceIdentifier | x509.RFC822Name | x509.IPAddress):
            yield str(name.value)
