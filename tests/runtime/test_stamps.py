"""Ids and timestamps."""

from __future__ import annotations

import os
import time

import pytest

from dragoman.model import canonical_time
from dragoman.runtime import stamps


def test_ids_are_random_hex_and_differ_across_blocks() -> None:
    ids = [stamps.new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(len(id) == 32 and int(id, 16) >= 0 for id in ids)


def test_a_forked_process_makes_other_ids() -> None:
    stamps.new_id()  # so that a block is there to be inherited
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, stamps.new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 64).decode()
    os.close(read)
    os.close(write)
    assert len(theirs) == 32
    assert theirs not in {stamps.new_id() for _ in range(300)}


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_767_225_599_999_999_999, "2025-12-31T23:59:59.999Z"),
        (1_767_225_600_000_000_000, "2026-01-01T00:00:00.000Z"),
        (1_767_225_600_007_000_000, "2026-01-01T00:00:00.007Z"),
    ],
)
def test_timestamps_are_canonical(monkeypatch: pytest.MonkeyPatch, nanoseconds: int, text: str) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds)
    assert stamps.utc_now() == text == canonical_time(text)
