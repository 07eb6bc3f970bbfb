"""What every test shares."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The project is asyncio only."""
    return "asyncio"
