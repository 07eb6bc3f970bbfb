"""Texts that callers and agents chose, as a column holds them.

One with U+0000, which PostgreSQL cannot hold, is written another way; no two texts are written the same.
"""

from __future__ import annotations


def written(text: str) -> str:
    """The text for a column."""
    if "\0" not in text and "\1" not in text:
        return text
    return text.replace("\1", "\1\1").replace("\0", "\1\2")
