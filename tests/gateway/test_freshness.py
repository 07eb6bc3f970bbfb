"""For how long a card is good, by its header fields."""

from __future__ import annotations

import pytest

from dragoman.gateway.freshness import Pace, lifetime
from dragoman.protocol.messages import Headers


def fields(**named: str) -> Headers:
    return Headers([(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()])


DATE = "Tue, 01 Dec 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, None),
        ({"cache_control": "public, max-age=60"}, 60),
        ({"cache_control": 'Max-Age="60"'}, 60),
        ({"cache_control": "max-age=60, s-maxage=600"}, 600),
        ({"cache_control": "max-age=60", "age": "50"}, 10),
        ({"cache_control": "max-age=60", "age": "500"}, 0),
        ({"cache_control": "max-age=60, no-cache"}, 0),
        ({"cache_control": "no-store"}, 0),
        ({"cache_control": "max-age=x"}, None),
        ({"date": DATE, "expires": "Tue, 01 Dec 2026 10:02:00 GMT"}, 120),
        ({"date": DATE, "expires": "Tue, 01 Dec 2026 09:00:00 GMT"}, 0),
        ({"date": DATE, "expires": "0"}, 0),
        ({"cache_control": "max-age=5", "date": DATE, "expires": "Tue, 01 Dec 2026 10:02:00 GMT"}, 5),
    ],
    ids=str,
)
def test_the_fields_say_how_long_a_card_is_fresh(given: dict[str, str], seconds: float | None) -> None:
    assert lifetime(fields(**given)) == seconds


@pytest.mark.parametrize(
    ("given", "said", "wait"),
    [
        ({}, None, 300),
        ({"cache_control": "max-age=60"}, None, 60),
        ({"cache_control": "max-age=60"}, 20.0, 20),
        ({"cache_control": "no-store"}, None, 10),
        ({"cache_control": "max-age=9999999"}, None, 86_400),
        ({}, 1.0, 10),
    ],
    ids=str,
)
def test_a_look_comes_when_it_is_due_but_not_too_often(given: dict[str, str], said: float | None, wait: float) -> None:
    assert wait * 0.95 <= Pace().wait(fields(**given), said) <= wait
