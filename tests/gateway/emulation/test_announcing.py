"""What a card says of what is made up for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dragoman.gateway.emulation.announcing import URI, announced
from dragoman.gateway.emulation.stack import lacking
from dragoman.model import AgentCard, AgentCardSignature, AgentExtension
from tests.gateway.lacking import SILENT
from tests.server.callers import CARD, EXTENSION

EVERYTHING = ("streaming", "subscribe", "blocking", "return-at-once")


def names(card: AgentCard) -> list[object]:
    return [one.params["emulated"] for one in card.capabilities.extensions if one.uri == URI and one.params]


def test_a_card_that_lacks_nothing_stays_as_it_is() -> None:
    assert announced(CARD, ()) is CARD


def test_an_entry_beside_the_agents_own_says_what_it_is_and_is_not_required() -> None:
    card = announced(replace(SILENT, signatures=(AgentCardSignature(protected="a", signature="b"),)), EVERYTHING)
    assert card.capabilities.extensions[0] == EXTENSION
    found = card.capabilities.extensions[1]
    assert (found.uri, found.required, found.params) == (URI, False, {"emulated": list(EVERYTHING)})
    assert card.capabilities.streaming is True and card.signatures == ()
    assert "GetTask" in found.description


@pytest.mark.parametrize("made_up", [("subscribe",), ("blocking",), ("return-at-once",), ("list-tasks",)])
def test_streaming_is_declared_only_where_it_is_made_up_for(made_up: tuple[str, ...]) -> None:
    assert announced(SILENT, made_up).capabilities.streaming is False
    assert announced(CARD, made_up).capabilities.streaming is True


def test_what_a_gateway_behind_this_one_makes_up_for_stays_told() -> None:
    behind = announced(SILENT, ("streaming",))
    assert names(announced(behind, ("list-tasks", "streaming"))) == [["streaming", "list-tasks"]]
    odd = replace(SILENT, capabilities=replace(SILENT.capabilities, extensions=(AgentExtension(uri=URI, params={}),)))
    assert names(announced(odd, ("blocking",))) == [["blocking"]]


@pytest.mark.parametrize(
    ("card", "wanted", "found"),
    [
        (SILENT, EVERYTHING, EVERYTHING),
        (CARD, EVERYTHING, ("blocking", "return-at-once")),
        (SILENT, (), ()),
        (SILENT, ("subscribe",), ("subscribe",)),
        (CARD, ("subscribe",), ()),
    ],
)
def test_nothing_is_claimed_that_is_off_or_that_the_agent_declares(
    card: AgentCard, wanted: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert lacking(wanted, card) == found
