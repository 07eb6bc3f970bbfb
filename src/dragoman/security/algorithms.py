"""What may sign a token: a table. All are asymmetric, for with a MAC who can verify could also sign."""

from __future__ import annotations

#: Kind of key, and its curve, per algorithm (RFC 7518 §3.1, RFC 8037, RFC 9864).
ALGORITHMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", "")),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
