"""From ``[auth]`` to whoever verifies callers: static keys as written, keys of issuers as they are fetched.

The packages for tokens and certificates are loaded only if the configuration has some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..client.options import Timeouts, Tls
from ..protocol.messages import HttpResponse
from ..security.callers import Verifier
from ..security.keys import Keys
from .admission import Admission
from .config.auth import Auth, Certificate, Jwt

if TYPE_CHECKING:
    from ..security.certificates import Certificates
    from ..security.jwks import KeySet
    from ..security.jwt import Tokens
    from ..security.key_sources import Fetch, Source

Tell = Callable[[str], None]

#: Of fetching the keys of an issuer. Seconds, bytes.
_TIMES = Timeouts(connect=5.0, reply=10.0)
_MOST = 512 * 1024


def admission_of(auth: Auth, tell: Tell, *, before: Admission | None = None) -> Admission:
    """Who may come in. ``before``: what it replaces after a reload: accounts go on, and so do the keys of an issuer
    that is fetched as before. ``tell`` hears of keys that cannot be fetched. Raises ``ConfigError`` if a package is
    missing."""
    known = before.key_sets if before is not None else {}
    key_sets = {one.issuer: _key_set(one, tell, before.auth if before else None, known) for one in auth.jwt}
    accounts = before.accounts if before is not None else None
    return Admission(auth, _verifier(auth, key_sets), accounts=accounts, key_sets=key_sets)


def _verifier(auth: Auth, key_sets: Mapping[str, KeySet]) -> Verifier:
    return Verifier(
        keys=Keys((key.name, key.secret.value) for key in auth.key) if auth.key else None,
        tokens=_tokens(auth.jwt, key_sets) if auth.jwt else None,
        certificates=_certificates(auth.certificate) if auth.certificate else None,
        api_key_header=auth.api_key_header,
        anonymous=auth.anonymous,
    )


def _tokens(issuers: tuple[Jwt, ...], key_sets: Mapping[str, KeySet]) -> Tokens:
    from ..security.jwt import Issuer, Tokens

    return Tokens(Issuer(one.issuer, one.audiences, one.algorithms, key_sets[one.issuer], one.claim) for one in issuers)


def _key_set(one: Jwt, tell: Tell, before: Auth | None, known: Mapping[str, KeySet]) -> KeySet:
    """The keys of an issuer: those that are there already, unless they are of a file, which may have changed."""
    from ..security.jwks import KeySet

    old = next((old for old in before.jwt if old.issuer == one.issuer), None) if before is not None else None
    if old is not None and not one.jwks_file and (old.jwks, old.jwks_file, old.ca) == (one.jwks, None, one.ca):
        return known[one.issuer]
    return KeySet(_source(one), tell=tell, issuer=one.issuer)


def _source(one: Jwt) -> Source:
    from ..security.key_sources import of_file, of_issuer, of_url

    if one.jwks_file is not None:
        return of_file(one.jwks_file.path)
    fetch = fetching(Tls(ca=one.ca.path if one.ca else None))
    return of_url(fetch, one.jwks) if one.jwks else of_issuer(fetch, one.issuer)


def _certificates(rules: tuple[Certificate, ...]) -> Certificates:
    from ..security.certificates import CertificateRule, Certificates

    return Certificates(CertificateRule(name=one.name, subject=one.subject, san=one.san) for one in rules)


def fetching(tls: Tls) -> Fetch:
    """GET of addresses that the operator named, so without a guard; redirects are not followed."""

    async def get(url: str) -> HttpResponse:
        from ..client.transports.connection import Fetch, build_client  # loads the HTTP client

        client = await asyncio.to_thread(build_client, _TIMES, tls)  # it reads the certificates of the system
        try:
            return await Fetch(client, _TIMES, _MOST).get(url, {"accept": "application/json"})
        finally:
            await client.close()

    return get
