"""Texts of callers and agents as columns hold them."""

from __future__ import annotations

import pytest

from dragoman.store.sql.texts import MARK, written

LONG = "x" * 201
PLAIN = ["", "t-1", "x" * 200, "ä" * 100, "a b/c%"]
STRANGE = ["\0", "a\0b", "\1", "\1\2", "\1\1", "\1#", LONG, "ä" * 101, LONG + "\0", "\ud800", "a\udfffb", "\0" * 200]


@pytest.mark.parametrize("text", PLAIN)
def test_a_short_text_is_written_as_it_is(text: str) -> None:
    assert written(text) == text


@pytest.mark.parametrize("text", STRANGE)
def test_anything_else_is_marked_and_fits_into_an_index(text: str) -> None:
    column = written(text)
    assert MARK in column and "\0" not in column and len(column.encode()) <= 400


def test_no_two_texts_are_written_the_same() -> None:
    texts = [*PLAIN, *STRANGE]
    texts += [written(text) for text in STRANGE]
    assert len({written(text) for text in texts}) == len(set(texts))
