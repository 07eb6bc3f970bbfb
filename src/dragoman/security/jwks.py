"""The public keys of a token issuer (RFC 7517): fetched, kept, and fetched again when they change.

Rules of this module:

- Nothing waits for a fetch while it has a key: a set that is no longer fresh is renewed in the background. Only who
  shows a key id that is not in the set waits, and a set is asked for at most every :data:`PAUSE` seconds.
- A fetch that fails, or that brings no key that can be used, changes nothing: the keys of before are kept for
  :data:`STALE` seconds more. It is tried again ever less often.
- Freshness is what the reply's Cache-Control says, within :data:`FRESH`.
- Symmetric keys and keys for encryption are never used, nor RSA keys of less than 2048 bits. A key of an unknown kind
  does not spoil the set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import ConfigError, DragomanError, PeerError
from .algorithms import ALGORITHMS
from .key_sources import Document, Source, json_object

try:
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("Tokens need the package joserfc: pip install dragoman[auth]") from error

log = logging.getLogger(__name__)

PublicKey: TypeAlias = RSAKey | ECKey | OKPKey

#: Seconds that a set is taken for fresh: at least, if nothing is said, at most.
FRESH = (60.0, 300.0, 3_600.0)
#: Seconds between two fetches for key ids that are not in the set.
PAUSE = 10.0
#: Seconds between attempts after failures, at most.
MOST_WAIT = 60.0
#: Seconds that keys are kept without news. By then the tokens of an issuer that is down are over too.
STALE = 86_400.0
#: Most keys of a set, and least bits of an RSA key.
MOST_KEYS = 100
_LEAST_RSA = 2048


class KeySet:
    """The keys of one issuer. ``edition`` changes when they do. ``clock``: seconds, never going back. ``tell`` hears
    that they cannot be fetched, and that they can again; ``issuer``: whose they are, in words."""

    def __init__(
        self,
        source: Source,
        *,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = log.warning,
        issuer: str = "an issuer",
    ) -> None:
        self._source = source
        self._issuer = issuer
        self._clock = clock
        self._tell = tell
        self._body = b""
        self._keys: tuple[PublicKey, ...] = ()
        self._fresh_until = self._kept_until = self._not_before = float("-inf")
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self.edition = 0

    @property
    def usable(self) -> bool:
        """Whether there are keys that can be relied on."""
        return self._clock() < self._kept_until

    def freshen(self) -> None:
        """Begin to renew them if it is time to; does not wait."""
        if self._clock() >= self._fresh_until:
            self._begin()

    async def renewed(self) -> None:
        """Renew them unless that was just done, and wait for the end."""
        self._begin()
        if self._task is not None:
            await asyncio.wait((self._task,))

    def find(self, kid: str | None, algorithm: str) -> list[PublicKey]:
        """The keys that may have signed: that with the id (all if there is none), of a kind for the algorithm."""
        if not self.usable:
            return []
        return [key for key in self._keys if (kid is None or key.kid == kid) and _suits(key, algorithm)]

    async def aclose(self) -> None:
        """End a fetch that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _begin(self) -> None:
        if self._task is None and self._clock() >= self._not_before:
            self._task = asyncio.create_task(self._renew(), name="dragoman-jwks")

    async def _renew(self) -> None:
        try:
            document = await self._source()
            keys = self._keys if document.body == self._body else read_keys(document.body)
        except (DragomanError, OSError) as error:
            self._fail(str(error))
        except Exception as error:  # the keys that there are must not be lost to a fault of ours
            log.exception("a key set cannot be read")
            self._fail(type(error).__name__)
        else:
            self._take(document, keys)
        finally:
            self._task = None

    def _take(self, document: Document, keys: tuple[PublicKey, ...]) -> None:
        if keys is not self._keys:
            self._keys, self._body, self.edition = keys, document.body, self.edition + 1
        if self._failures:
            self._tell(f"the keys of {self._issuer} can be fetched again")
        self._failures = 0
        least, usual, most = FRESH
        now = self._clock()
        self._fresh_until = now + min(max(usual if document.max_age is None else document.max_age, least), most)
        self._kept_until, self._not_before = self._fresh_until + STALE, now + PAUSE

    def _fail(self, why: str) -> None:
        if not self._failures:
            held = "those of before are kept" if self.usable else "its tokens cannot be verified"
            self._tell(f"the keys of {self._issuer} cannot be fetched, {held}: {why}")
        self._not_before = self._clock() + min(2.0 ** min(self._failures, 10), MOST_WAIT)
        self._failures += 1


def read_keys(body: bytes) -> tuple[PublicKey, ...]:
    """The usable keys of a key set. Raises ``PeerError`` if there are none, so also for what is no key set."""
    listed = json_object(body, "the key set").get("keys")
    found = [key for one in (listed if isinstance(listed, list) else [])[:MOST_KEYS] if (key := _read_key(one))]
    if not found:
        raise PeerError("the key set has no key that can be used")
    return tuple(found)


def _read_key(value: Any) -> PublicKey | None:
    if not isinstance(value, dict) or value.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    if value["kty"] == "RSA" and len(str(value.get("n"))) * 6 < _LEAST_RSA:
        return None
    if value.get("use", "sig") != "sig" or "verify" not in value.get("key_ops", ("verify",)):
        return None
    try:
        key = JWKRegistry.import_key(value)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return key if isinstance(key, RSAKey | ECKey | OKPKey) else None


def _suits(key: PublicKey, algorithm: str) -> bool:
    kind, curve = ALGORITHMS[algorithm]
    if key.key_type != kind or key.get("alg", algorithm) != algorithm:
        return False
    return not curve or (not isinstance(key, RSAKey) and key.curve_name == curve)
