"""What an operator writes about who may call: how callers are verified, what each may do, and which pages may ask.

Rules of this module:

- Without ``[auth]`` everybody is anonymous and nothing is checked; with it nobody is, unless ``anonymous`` says so.
- A caller has the rule of its own name, else the first whose pattern fits, else ``[auth.default]``: one rule alone.
- Names that an operator gives have no ``#``: those of tokens and certificates do (``dragoman.security.callers``).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from .values import Count, FilePath, Secret

#: Name of the rule for callers who show nothing.
ANONYMOUS = "anonymous"

Rate = Annotated[float, Meta(gt=0, le=1_000_000)]
Age = Annotated[int, Meta(ge=0, le=86_400)]


class Key(Struct, frozen=True, kw_only=True):
    """A static key, as bearer token or in the API key header. Several of one name are one caller's, so that a new key
    can be handed out before the old one is gone."""

    name: str
    secret: Secret


class Jwt(Struct, frozen=True, kw_only=True):
    """An issuer whose tokens are taken.

    ``issuer``: as in the tokens. ``audience``: the gateway's names there. ``jwks``: URL of its keys, or ``jwks_file``
    with them; default what the issuer's OpenID metadata names. ``algorithms``: that may sign. ``claim``: names the
    caller, who is ``issuer#claim`` here. ``ca``: roots to trust for fetching, besides the usual ones.
    """

    issuer: str
    audience: str | tuple[str, ...]
    jwks: str = ""
    jwks_file: FilePath | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    claim: str = "sub"
    ca: FilePath | None = None

    @property
    def audiences(self) -> tuple[str, ...]:
        """All of the gateway's names."""
        return (self.audience,) if isinstance(self.audience, str) else self.audience


class Certificate(Struct, frozen=True, kw_only=True):
    """Client certificates that are taken: ``subject`` and ``san`` are patterns for its RFC 4514 subject and one of its
    alternative names; ``name`` is the caller's, default ``certificate#`` and what matched."""

    name: str = ""
    subject: str = ""
    san: str = ""


class Rule(Struct, frozen=True, kw_only=True):
    """What a caller may do, None = all. ``calls_per_second`` on the long run, ``burst`` at once (default: those of one
    second); ``concurrent_calls`` and ``streams`` open at a time, over all upstreams and faces."""

    upstreams: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    calls_per_second: Rate | None = None
    burst: Count | None = None
    concurrent_calls: Count | None = None
    streams: Count | None = None


class CallerRule(Rule, frozen=True, kw_only=True):
    """The rule of the callers that ``name`` fits, a name or a pattern with ``*``."""

    name: str


class Auth(Struct, frozen=True, kw_only=True):
    """How callers are verified, and what each may do. ``anonymous``: who shows nothing may call, under the rule of
    this name."""

    anonymous: bool = False
    api_key_header: str = "X-API-Key"
    key: tuple[Key, ...] = ()
    jwt: tuple[Jwt, ...] = ()
    certificate: tuple[Certificate, ...] = ()
    caller: tuple[CallerRule, ...] = ()
    default: Rule = Rule()


class Cors(Struct, frozen=True, kw_only=True):
    """Which pages of other origins may call from a browser.

    ``origins``: such as ``https://app.example``, or ``*``. ``headers``: further request fields, ``expose``: further
    reply fields that scripts may use. ``max_age``: seconds that a browser remembers the answer. ``credentials``:
    cookies and client certificates go along.
    """

    origins: tuple[str, ...]
    headers: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    max_age: Age = 600
    credentials: bool = False
