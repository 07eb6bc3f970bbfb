"""Static keys: which caller a secret belongs to.

A secret is looked up by its SHA-256. The time that a look-up takes tells something of the digest at most, which nobody
can steer toward the digest of a secret that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


class Keys:
    """Names by secret. ``named``: names and secrets; a name may have several, so that one can follow another."""

    def __init__(self, named: Iterable[tuple[str, str]]) -> None:
        self._names = {sha256(secret.encode()).digest(): name for name, secret in named}

    def name_of(self, digest: bytes) -> str | None:
        """The caller whose secret has this SHA-256, None if there is none."""
        return self._names.get(digest)
