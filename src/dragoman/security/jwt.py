"""JSON Web Tokens as bearer tokens (RFC 7519, RFC 8725, RFC 9068): whether one is for us, and whom it names.

Rules of this module:

- An issuer, an audience and an expiry are required; clocks may differ by :data:`LEEWAY` seconds.
- The algorithm is one of those that the operator allows for the issuer, which are all asymmetric: neither ``none``
  nor a MAC with a public key as its secret gets as far as a key.
- Of the types of tokens only those are taken that are for access or say nothing: ``JWT``, ``at+jwt``, none.
- A token is verified once and then known by its digest until it is over or the keys of its issuer change.
- A caller is ``issuer#claim``, so that no issuer can name another's subjects.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ..errors import ConfigError, UnauthenticatedError, UnavailableError
from .jwks import KeySet, PublicKey

try:
    from joserfc import jwt
    from joserfc.errors import BadSignatureError, ExpiredTokenError, JoseError, UnsupportedAlgorithmError
    from joserfc.jwa import JWSAlgModel
    from joserfc.jws import JWSRegistry
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("Tokens need the package joserfc: pip install dragoman[auth]") from error

LEEWAY = 60
#: Bytes of a token, and characters of the claim that names a caller.
MOST_TOKEN = 16_384
MOST_NAME = 255
_KEPT = 20_000
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt", "application/jwt"})

Refusal = Callable[[str], UnauthenticatedError]


class _Registry(JWSRegistry):
    """The algorithms of one issuer, and headers of any content: issuers put much into them."""

    max_header_length = 8_192

    def __init__(self, algorithms: tuple[str, ...]) -> None:
        super().__init__(algorithms=algorithms, strict_check_header=False)
        self._ours = {name: self.algorithms[name] for name in algorithms}

    def get_alg(self, name: str) -> JWSAlgModel:
        try:
            return self._ours[name]
        except KeyError:
            raise UnsupportedAlgorithmError from None


class Issuer(NamedTuple):
    """Whose tokens are taken. ``audience``: names that we have there; ``claim`` names the caller."""

    name: str
    audience: tuple[str, ...]
    algorithms: tuple[str, ...]
    keys: KeySet
    claim: str = "sub"


class _Known(NamedTuple):
    caller: str
    until: float
    keys: KeySet
    edition: int


class _Claims(msgspec.Struct):
    """What a token says before anybody has looked at its signature."""

    iss: Any = None
    aud: Any = None


class _Head(msgspec.Struct):
    alg: Any = None
    kid: Any = None
    typ: Any = None


_claims = msgspec.json.Decoder(_Claims)
_head = msgspec.json.Decoder(_Head)


class Tokens:
    """Callers by token. ``clock``: seconds since the epoch."""

    def __init__(self, issuers: Iterable[Issuer], *, clock: Callable[[], float] = time.time) -> None:
        self._issuers = {issuer.name: issuer for issuer in issuers}
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._registries = {name: _Registry(issuer.algorithms) for name, issuer in self._issuers.items()}

    def start(self) -> None:
        """Begin to fetch the keys of every issuer, so that the first token does not wait for them."""
        for issuer in self._issuers.values():
            issuer.keys.freshen()

    async def aclose(self) -> None:
        """End every fetch that is under way."""
        for issuer in self._issuers.values():
            await issuer.keys.aclose()

    def known(self, digest: bytes) -> str | None:
        """The caller whose token, verified before, has this SHA-256."""
        known = self._known.get(digest)
        if known is None:
            return None
        keys = known.keys
        keys.freshen()
        if known.until > self._clock() and known.edition == keys.edition and keys.usable:
            return known.caller
        del self._known[digest]
        return None

    def addressed(self, token: bytes) -> bool:
        """Whether a token says that it is of an issuer of ours and for us; nothing of it is verified."""
        return not self.why_not_ours(token)

    def why_not_ours(self, token: bytes) -> str:
        """What speaks against a token at first sight, empty if nothing does."""
        claims = _peek(token)
        if claims is None:
            return "The token is not valid"
        issuer = self._issuers.get(claims.iss) if isinstance(claims.iss, str) else None
        if issuer is None:
            return "The token is of an unknown issuer"
        return "" if _for_us(claims.aud, issuer.audience) else "The token is for another audience"

    async def verify(self, token: bytes, refusal: Refusal) -> str:
        """The caller that a token which is addressed to us names.

        Raises what ``refusal`` makes of what is wrong, ``UnavailableError`` if the issuer's keys cannot be had.
        """
        claims = _peek(token)
        if claims is None or claims.iss not in self._issuers:
            raise refusal("The token is not valid")
        issuer = self._issuers[claims.iss]
        keys = await self._candidates(issuer, token, refusal)
        told = self._checked(issuer, token, keys, refusal)
        name = told.get(issuer.claim)
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not name.isprintable():
            raise refusal("The token does not name a caller")
        return self._keep(token, f"{issuer.name}#{name}", told["exp"] + LEEWAY, issuer.keys)

    async def _candidates(self, issuer: Issuer, token: bytes, refusal: Refusal) -> list[PublicKey]:
        """The keys that may have signed a token."""
        head = _part(token, 0, _head)
        if head is None or head.alg not in issuer.algorithms:
            raise refusal("The token is signed with an algorithm that is not allowed")
        if head.typ is not None and str(head.typ).lower() not in _TYPES:
            raise refusal("The token is of a type that is not for access")
        kid = head.kid if isinstance(head.kid, str) else None
        keys = issuer.keys
        keys.freshen()
        found = keys.find(kid, head.alg)
        if not found:
            await keys.renewed()
            found = keys.find(kid, head.alg)
        if not found and not keys.usable:
            raise UnavailableError("Tokens of this issuer cannot be verified at the moment", retry_after=5)
        if not found:
            raise refusal("The token is signed with an unknown key")
        return found

    def _checked(self, issuer: Issuer, token: bytes, keys: list[PublicKey], refusal: Refusal) -> dict[str, Any]:
        """The claims of a token whose signature and times are good."""
        registry = self._registries[issuer.name]
        rules = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY,
            iss={"essential": True, "value": issuer.name},
            aud={"essential": True, "values": list(issuer.audience)},
            exp={"essential": True},
        )
        for key in keys:
            try:
                found = jwt.decode(token, key, registry=registry)
                rules.validate(found.claims)
                return found.claims
            except BadSignatureError:
                continue
            except ExpiredTokenError:
                raise refusal("The token has expired") from None
            except (JoseError, ValueError, RecursionError):
                raise refusal("The token is not valid") from None
        raise refusal("The signature of the token is wrong")

    def _keep(self, token: bytes, caller: str, until: float, keys: KeySet) -> str:
        self._known[sha256(token).digest()] = _Known(caller, until, keys, keys.edition)
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return caller


def _for_us(told: Any, ours: tuple[str, ...]) -> bool:
    return told in ours if isinstance(told, str) else isinstance(told, list) and any(one in told for one in ours)


def _peek(token: bytes) -> _Claims | None:
    """The claims of what may be a token, None of what is not."""
    if len(token) > MOST_TOKEN or token.count(b".") != 2:
        return None
    claims: _Claims | None = _part(token, 1, _claims)
    return claims


def _part(token: bytes, place: int, decoder: msgspec.json.Decoder[Any]) -> Any:
    text = token.split(b".")[place]
    try:
        return decoder.decode(urlsafe_b64decode(text + b"=" * (-len(text) % 4)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
