"""PostgreSQL, as the tests of stores have it."""

from __future__ import annotations

from tests.store.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
