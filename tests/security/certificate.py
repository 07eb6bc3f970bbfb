"""Client certificates as an ASGI server hands them over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

UNTIL = datetime(2090, 1, 1, tzinfo=UTC)
_KEY = generate_private_key(SECP256R1())


@cache
def pem(*names: str, common: str = "x", until: datetime = UNTIL) -> str:
    """A certificate with alternative names: a URI has ``://``, an email ``@``, the rest are hosts."""
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Corp"), x509.NameAttribute(NameOID.COMMON_NAME, common)]
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(_KEY.public_key())
        .serial_number(1)
        .not_valid_before(until - timedelta(days=36_500))
        .not_valid_after(until)
    )
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
    return made.sign(_KEY, SHA256()).public_bytes(Encoding.PEM).decode()


def _name(text: str) -> x509.GeneralName:
    if "://" in text:
        return x509.UniformResourceIdentifier(text)
    return x509.RFC822Name(text) if "@" in text else x509.DNSName(text)


def client_scope(*names: str, error: str | None = None, **more: Any) -> dict[str, Any]:
    """The scope of a request whose client showed such a certificate."""
    tls = {"client_cert_chain": (pem(*names, **more),), "client_cert_error": error}
    return {"type": "http", "extensions": {"tls": tls}}
