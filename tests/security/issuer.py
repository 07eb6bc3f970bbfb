"""An issuer of tokens in memory: its keys, what it signs, and its key set as something to fetch."""

from __future__ import annotations

import asyncio
import base64
import json
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from dragoman.errors import TransportError
from dragoman.security.jwks import KeySet
from dragoman.security.jwt import Issuer, Tokens
from dragoman.security.key_sources import Document

NAME = "https://id.example"
AUDIENCE = "dragoman"
NOW = 1_900_000_000.0

Key = RSAKey | ECKey | OKPKey


class Clock:
    """A clock in the hands of a test, seconds."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@cache
def rsa(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid})


@cache
def ec(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid})


@cache
def ed(kid: str) -> OKPKey:
    return OKPKey.generate_key("Ed25519", {"kid": kid})


def key_set(*keys: Key, more: tuple[dict[str, Any], ...] = ()) -> bytes:
    return json.dumps({"keys": [*(key.as_dict(private=False) for key in keys), *more]}).encode()


def token(key: Key, alg: str = "RS256", head: dict[str, Any] | None = None, /, **claims: Any) -> str:
    """A token that is good unless ``claims`` (None leaves one out) or ``head`` spoil it."""
    header = {"alg": alg, "kid": key.kid, **(head or {})}
    made = {"iss": NAME, "aud": AUDIENCE, "sub": "alice", "exp": int(NOW) + 600, **claims}
    sound = {name: value for name, value in made.items() if value is not None}
    registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
    registry.max_header_length = 4096
    return jwt.encode({k: v for k, v in header.items() if v is not None}, sound, key, registry=registry)


def unsigned(**claims: Any) -> str:
    """``alg: none``, for whoever believes it."""
    made = {"iss": NAME, "aud": AUDIENCE, "sub": "alice", "exp": int(NOW) + 600, **claims}
    return ".".join((_segment({"alg": "none"}), _segment(made), ""))


def mac_with_public_key(key: RSAKey, **head: Any) -> str:
    """A MAC whose secret is the public key, which everybody has."""
    pem = key.raw_value.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[union-attr]  # it is the private one
    made = {"iss": NAME, "aud": AUDIENCE, "sub": "alice", "exp": int(NOW) + 600}
    secret = OctKey.import_key(base64.urlsafe_b64encode(pem).decode())
    return jwt.encode({"alg": "HS256", "kid": key.kid, **head}, made, secret, algorithms=["HS256"])


def _segment(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Endpoint:
    """Where the key set is fetched: ``body``, or ``down``. ``gate``: closed, a fetch waits, and ``asked`` says so."""

    def __init__(self, *keys: Key) -> None:
        self.body = key_set(*keys)
        self.max_age: float | None = None
        self.down = False
        self.fetched = 0
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    def publish(self, *keys: Key) -> None:
        self.body = key_set(*keys)

    async def __call__(self) -> Document:
        self.fetched += 1
        self.asked.set()
        await self.gate.wait()
        if self.down:
            raise TransportError("nobody there")
        return Document(self.body, self.max_age)


class Trusted:
    """An issuer that is trusted, the clock, and the tokens of it that are taken."""

    def __init__(self, *keys: Key, algorithms: tuple[str, ...] = ("RS256", "ES256"), claim: str = "sub") -> None:
        self.clock = Clock()
        self.endpoint = Endpoint(*keys)
        self.told: list[str] = []
        self.keys = KeySet(self.endpoint, clock=self.clock, tell=self.told.append, issuer=NAME)
        self.tokens = Tokens([Issuer(NAME, (AUDIENCE,), algorithms, self.keys, claim)], clock=self.clock)
