"""The pages that are made from tables are the tables as they are now."""

from __future__ import annotations

import re
from pathlib import Path

from dragoman.dialects.losses import as_markdown
from dragoman.gateway.telemetry.catalog import METRICS, on_page

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_losses_is_the_table_of_losses() -> None:
    assert (DOCS / "losses.md").read_text() == as_markdown(), "run `make docs`"


def test_the_page_for_operators_has_the_table_of_metrics() -> None:
    page = (DOCS / "operations.md").read_text()
    assert page == on_page(page), "run `make docs`"
    assert all(f"| `{name}` |" in page for name in METRICS)


def test_every_metric_that_a_page_names_is_one_that_there_is() -> None:
    for page in DOCS.glob("*.md"):
        named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\bdragoman_\w+", page.read_text())}
        assert named <= METRICS.keys(), page.name
