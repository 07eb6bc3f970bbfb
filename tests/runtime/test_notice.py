"""When a webhook is told again."""

from __future__ import annotations

import pytest

from dragoman.runtime.notice import Retry, wanted_pause

NOW = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("Sun, 15 Jun 2025 15:07:40 GMT", 60.0),
        ("Sun, 15 Jun 2025 15:06:00 GMT", 0.0),
        ("Sunday, 15-Jun-25 15:07:40 GMT", 60.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("\u0667", 0.0),
        ("9" * 40, 999_999_999.0),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999", 0.0),
    ],
)
def test_a_webhook_says_when_in_seconds_or_by_a_date(text: str, seconds: float) -> None:
    assert wanted_pause(text, NOW) == seconds


@pytest.mark.parametrize(
    ("failures", "random", "wanted", "wait"),
    [
        *((1, 0.0, 0.0, 1.0), (1, 1.0, 0.0, 0.5), (3, 0.0, 0.0, 4.0), (3, 0.0, 7.0, 7.0)),
        *((9, 0.0, 0.0, 60.0), (9, 1.0, 0.0, 30.0), (1, 0.0, 3600.0, 60.0)),
    ],
)
def test_a_wait_grows_and_is_never_shorter_than_wanted_nor_longer_than_the_most(
    failures: int, random: float, wanted: float, wait: float
) -> None:
    assert Retry().later(failures, random, wanted) == wait
