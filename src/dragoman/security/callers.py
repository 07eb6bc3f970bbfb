"""Who is calling: credentials of a request in, a verified principal or nobody out.

Rules of this module:

- What counts is, in this order: the API key, the bearer token (a static key or a JWT), the client certificate. Who
  shows none of them is anonymous, if that is allowed.
- A credential that is shown and is wrong is refused, it never makes its owner anonymous. The exception is a bearer
  token that is not for us beside a key or certificate that is: that one is for the agent.
- Fields with credentials come once. Of several, one could be for us and the other not, and who is to say which.
- A name tells one caller from every other. An operator's names have no ``#``; what a token or a certificate says of
  itself stands behind one: ``https://id.example#alice``, ``certificate#spiffe://corp/billing``. So nobody takes the
  name of a static key by calling itself so, nor do two issuers share a subject.
- What verified a caller is ``consumed``: it is meant for us, and no agent behind us gets to see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ..errors import InvalidRequestError, UnauthenticatedError
from ..protocol.messages import Headers
from ..service import ANONYMOUS, Caller
from .keys import Keys

if TYPE_CHECKING:
    from .certificates import Certificates
    from .jwt import Tokens

#: Stands in names that a token or a certificate tells, and in none that an operator gives.
TOLD = "#"
_AUTHORIZATION = b"authorization"
_BEARER = frozenset({_AUTHORIZATION})
_NOTHING: frozenset[bytes] = frozenset()


class Verified(Struct, frozen=True, kw_only=True):
    """A caller that was verified. ``consumed``: lower-case names of the fields that did it."""

    name: str
    consumed: frozenset[bytes] = _NOTHING


class Callers(Protocol):
    """Whom a server asks who is calling."""

    def known(self, headers: Headers, scope: Mapping[str, Any]) -> Caller | None:
        """The caller, if that can be told at once; None if it takes :meth:`verify` to tell."""
        ...

    async def verify(self, headers: Headers, scope: Mapping[str, Any]) -> Caller:
        """The caller. Raises ``UnauthenticatedError`` with its challenge, ``InvalidRequestError`` for what cannot be
        understood, ``UnavailableError`` if nobody can tell."""
        ...


class Verifier:
    """:class:`Callers` by static keys, tokens and certificates.

    ``api_key_header``: field for static keys besides the bearer token. ``anonymous``: who shows nothing may call.
    ``realm``: stands in the challenge.
    """

    def __init__(
        self,
        *,
        keys: Keys | None = None,
        tokens: Tokens | None = None,
        certificates: Certificates | None = None,
        api_key_header: str = "X-API-Key",
        anonymous: bool = False,
        realm: str = "dragoman",
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._certificates = certificates
        self._header_name = api_key_header
        self._header = api_key_header.lower().encode("latin-1") if keys is not None else b""
        self._bearers = keys is not None or tokens is not None
        self._anonymous = anonymous
        self._realm = realm
        self._by_header = frozenset({self._header})
        self._by_both = self._by_header | _BEARER

    def start(self) -> None:
        """Begin to fetch what it takes to verify tokens; without it the first token does."""
        if self._tokens is not None:
            self._tokens.start()

    async def aclose(self) -> None:
        """End what is under way."""
        if self._tokens is not None:
            await self._tokens.aclose()

    def known(self, headers: Headers, scope: Mapping[str, Any]) -> Caller | None:
        """As :meth:`Callers.known`."""
        if self._repeated(headers):
            return None
        fields = headers.fields()
        keys = self._keys
        if keys is not None and self._header in fields:
            name = keys.name_of(sha256(fields[self._header].strip()).digest())
            return Verified(name=name, consumed=self._consumed(fields)) if name is not None else None
        if self._bearers and _AUTHORIZATION in fields:
            return self._bearer(fields[_AUTHORIZATION])
        return self._unspoken(scope)

    async def verify(self, headers: Headers, scope: Mapping[str, Any]) -> Caller:
        """As :meth:`Callers.verify`. Raises ``InvalidRequestError`` for credentials that came twice (RFC 6750 §3.1)."""
        caller = self.known(headers, scope)
        if caller is not None:
            return caller
        if repeated := self._repeated(headers):
            raise InvalidRequestError(f"The field {repeated} came more than once")
        fields = headers.fields()
        if self._keys is not None and self._header in fields:
            raise self.refusal(f"The key in {self._header_name} is not valid")
        if self._bearers and _AUTHORIZATION in fields:
            return await self._verify_bearer(fields[_AUTHORIZATION], scope)
        raise self.refusal()

    def refusal(self, wrong: str = "") -> UnauthenticatedError:
        """The error for credentials that are ``wrong``, for none if that is empty (RFC 6750 §3, RFC 9110 §11.6.1)."""
        if not self._bearers:
            return UnauthenticatedError(wrong or self._wanted(), challenge=f'ClientCertificate realm="{self._realm}"')
        challenge = f'Bearer realm="{self._realm}"'
        if wrong:
            challenge += f', error="invalid_token", error_description="{wrong}"'
        return UnauthenticatedError(wrong or self._wanted(), challenge=challenge)

    def _repeated(self, headers: Headers) -> str:
        """The name of a field with credentials that came more than once, else empty."""
        if headers.repeats(_AUTHORIZATION):
            return "Authorization"
        return self._header_name if self._header and headers.repeats(self._header) else ""

    def _wanted(self) -> str:
        ways = ["a bearer token"] if self._bearers else []
        ways += [f"a key in {self._header_name}"] if self._keys is not None else []
        ways += ["a client certificate"] if self._certificates is not None else []
        return f"Authentication is required: {' or '.join(ways) or 'but nobody can be verified here'}"

    def _bearer(self, authorization: bytes) -> Caller | None:
        token = bearer_token(authorization)
        digest = sha256(token).digest()
        if self._keys is not None and (name := self._keys.name_of(digest)) is not None:
            return Verified(name=name, consumed=_BEARER)
        name = self._tokens.known(digest) if self._tokens is not None else None
        return Verified(name=name, consumed=_BEARER) if name is not None else None

    async def _verify_bearer(self, authorization: bytes, scope: Mapping[str, Any]) -> Caller:
        token = bearer_token(authorization)
        if self._tokens is not None and self._tokens.addressed(token):
            return Verified(name=await self._tokens.verify(token, self.refusal), consumed=_BEARER)
        name = self._certified(scope)
        if name is not None:
            return Verified(name=name)  # the token is for the agent
        raise self.refusal(self._tokens.why_not_ours(token) if self._tokens is not None else "The token is not valid")

    def _unspoken(self, scope: Mapping[str, Any]) -> Caller | None:
        """The caller whose fields say nothing: its certificate does, or it is nobody in particular."""
        name = self._certified(scope)
        if name is not None:
            return Verified(name=name)
        return ANONYMOUS if self._anonymous else None

    def _certified(self, scope: Mapping[str, Any]) -> str | None:
        return self._certificates.name_of(scope) if self._certificates is not None else None

    def _consumed(self, fields: Mapping[bytes, bytes]) -> frozenset[bytes]:
        """The key's field; and Authorization too if what is in there is for us."""
        authorization = fields.get(_AUTHORIZATION)
        if authorization is None:
            return self._by_header
        ours = self._bearer(authorization) is not None
        if not ours and self._tokens is not None:
            ours = self._tokens.addressed(bearer_token(authorization))
        return self._by_both if ours else self._by_header


def bearer_token(authorization: bytes) -> bytes:
    """The token of an Authorization field (RFC 6750 §2.1), empty for another scheme."""
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""
