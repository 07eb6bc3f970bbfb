"""The pages that are made from tables are the tables as they are now."""

from __future__ import annotations

from pathlib import Path

from dragoman.dialects.losses import as_markdown

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_losses_is_the_table_of_losses() -> None:
    assert (DOCS / "losses.md").read_text() == as_markdown(), "run `make docs`"
