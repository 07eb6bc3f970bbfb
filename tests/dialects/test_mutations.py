"""Golden bodies with one value replaced: read or refused in the protocol's own terms, never anything else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.dialects.cards import load_card
from dragoman.errors import InvalidParamsError, JSONParseError, PeerError, UnsupportedOperationError
from tests.dialects.vectors import CASES, SHAPES, Case, text

ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**70, "", "x", "tasks/", [], [None], [[]], {}, {"a": {"b_c": None}})
PER_BODY = 12
REFUSED = (InvalidParamsError, JSONParseError, PeerError, UnsupportedOperationError)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    key, *rest = path
    copy = value.copy()
    copy[key] = replaced(value[key], tuple(rest), odd)
    return copy


def mutants(body: Any, seed: str) -> Iterator[bytes]:
    chance = random.Random(seed)
    where = list(places(body))
    for _ in range(PER_BODY):
        yield text(replaced(body, chance.choice(where), chance.choice(ODD)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
@pytest.mark.parametrize("written", SHAPES)
@pytest.mark.parametrize("read", SHAPES)
def test_whatever_comes_is_read_or_refused(case: Case, written: str, read: str) -> None:
    outcomes = set()
    for body in mutants(case.bodies.get(written), f"{case.name}{written}"):
        try:
            case.load(SHAPES[read], body)
            outcomes.add("read")
        except REFUSED:
            outcomes.add("refused")
        load_card_safely(body)
    assert outcomes


def load_card_safely(body: bytes) -> None:
    try:
        card = load_card(body)
    except PeerError:
        return
    assert card.name and card.supported_interfaces
