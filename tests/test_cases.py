"""Failures between real peers, each with the tests that hold the right behaviour. No number is without one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


class Case(NamedTuple):
    """What went wrong somewhere, and ``file::test`` of whatever copes with it, below this directory."""

    number: int
    what: str
    tests: tuple[str, ...]


CASES = (
    Case(
        1,
        "a 1.0 card before an endpoint that speaks 0.3",
        (
            "client/test_connections.py::test_a_peer_that_does_not_know_the_name_is_doubted_in_words",
            "dialects/test_v1.py::test_a_1_0_reply_is_forgiven",
        ),
    ),
    Case(
        2,
        "a 0.3 method name sent to an agent of 1.0",
        (
            "server/test_bad_input.py::test_a_method_of_the_other_version_is_not_found_and_the_cure_is_named",
            "server/test_versions.py::test_leniently_the_name_decides_when_no_version_is_sent",
        ),
    ),
    Case(
        3,
        "the version header is lost on the way",
        ("server/test_versions.py::test_an_interface_of_one_version_names_it_to_those_who_ask_for_the_other",),
    ),
    Case(
        4,
        "1.0 names and values sent to 0.3",
        (
            "server/test_bad_input.py::test_a_method_of_the_other_version_is_not_found_and_the_cure_is_named",
            "dialects/test_v03.py::test_every_shape_of_a_0_3_message_is_read",
        ),
    ),
    Case(
        5,
        "a translated method with an untranslated reply",
        (
            "gateway/test_pairs.py::test_parts_of_every_kind_go_there_and_back",
            "cli/test_commands.py::test_a_reply_becomes_what_the_other_version_wraps_it_in",
        ),
    ),
    Case(
        6,
        "a 0.3 client at a 1.0 server",
        (
            "gateway/test_pairs.py::test_parts_of_every_kind_go_there_and_back",
            "server/test_bad_input.py::test_a_message_that_breaks_a_rule_is_refused_by_field",
        ),
    ),
    Case(
        7,
        "the caller's version header overrides that of the interface",
        (
            "client/test_http_calls.py::test_the_version_of_the_interface_stands_above_the_callers_own_headers",
            "gateway/test_gateway.py::test_the_callers_version_header_never_reaches_an_upstream_of_another_version",
        ),
    ),
    Case(
        8,
        "only names from before 0.3 exist",
        ("client/test_connections.py::test_a_peer_that_does_not_know_the_name_is_doubted_in_words",),
    ),
    Case(
        9,
        "a missing header answered with plain text",
        (
            "client/test_http_calls.py::test_whatever_is_no_reply_becomes_a_typed_error_that_says_what_it_was",
            "server/test_versions.py::test_a_version_error_is_answered_under_the_id_of_the_request",
        ),
    ),
    Case(
        10,
        "an unsupported version served as if it were 1.0",
        ("server/test_versions.py::test_the_version_is_what_the_request_asks_for",),
    ),
    Case(
        11,
        "metadata keys of gRPC with capitals",
        ("client/test_grpc_calls.py::test_metadata_keys_are_lower_case_and_activated_extensions_come_back",),
    ),
    Case(
        12,
        "a card of 1.0 alone, asked for without a version",
        (
            "server/test_card.py::test_a_server_of_one_version_has_one_card_whatever_is_asked_for",
            "dialects/test_cards.py::test_a_card_without_a_0_3_interface_has_no_0_3_shape",
        ),
    ),
    Case(
        13,
        "a 0.3 reader of a 1.0 card misses its url",
        (
            "server/test_card.py::test_the_version_that_is_asked_for_decides_the_shape",
            "dialects/test_cards.py::test_a_hybrid_reads_as_itself_and_as_either_version",
        ),
    ),
    Case(
        14,
        "http in the card behind a proxy that ends TLS",
        ("server/test_card.py::test_a_trusted_proxy_tells_the_url_and_a_stranger_does_not",),
    ),
    Case(
        15,
        "an address in the card that callers cannot reach",
        (
            "server/test_card.py::test_no_card_names_an_address_that_nobody_can_call",
            "client/test_rebase.py::test_a_url_that_cannot_be_right_gets_the_origin_that_was_given",
            "gateway/test_gateway.py::test_the_card_names_the_gateway_once_and_never_the_upstream",
        ),
    ),
    Case(
        16,
        "a prefix written twice",
        (
            "server/test_origin.py::test_a_prefix_is_never_doubled",
            "gateway/test_gateway.py::test_the_card_names_the_gateway_once_and_never_the_upstream",
        ),
    ),
    Case(
        17,
        "a rewritten card under its old signature",
        (
            "gateway/test_gateway.py::test_a_signature_does_not_survive_a_change_of_the_card",
            "server/test_card.py::test_the_extended_card_names_our_interfaces_too",
        ),
    ),
    Case(
        18,
        "in_ for the place of an API key",
        ("dialects/test_cards.py::test_the_place_of_an_api_key_is_read_however_it_is_called",),
    ),
    Case(
        19,
        "an empty object taken for a card",
        (
            "dialects/test_cards.py::test_what_is_no_card_is_said_with_what_is_missing",
            "cli/test_commands.py::test_a_card_that_is_none_is_5",
        ),
    ),
    Case(
        20,
        "a mounted server whose card names the root",
        (
            "server/test_card.py::test_the_card_of_a_mounted_app_names_the_mount",
            "server/test_routes.py::test_the_card_of_a_mounted_app_is_below_the_mount_and_names_it",
        ),
    ),
    Case(
        21,
        "the words of 0.3 HTTP+JSON",
        (
            "dialects/test_vectors.py::test_a_golden_body_reads_as_the_canonical_message",
            "gateway/test_pairs.py::test_a_task_is_fetched_and_followed_and_canceled",
        ),
    ),
    Case(
        22,
        "a stream that is one JSON array",
        ("client/test_streams.py::test_a_stream_is_read_in_every_form_that_peers_write",),
    ),
    Case(
        23,
        "a JSON-RPC envelope posted to an HTTP+JSON route",
        ("server/test_bad_input.py::test_an_envelope_posted_to_a_route_is_refused_by_what_it_lacks",),
    ),
    Case(24, "a send answered with 201", ("protocol/test_rest.py::test_any_success_is_a_result",)),
    Case(
        25,
        "an absent blocking taken for return-at-once",
        (
            "server/test_streams.py::test_absent_blocking_of_0_3_means_what_its_binding_means",
            "gateway/test_gateway.py::test_a_0_3_caller_that_says_nothing_of_blocking_waits_for_the_upstream",
        ),
    ),
    Case(
        26,
        "typed errors flattened on the way",
        ("gateway/test_pairs.py::test_typed_errors_keep_their_type_and_what_they_say",),
    ),
    Case(27, "a bare task where a wrapped one belongs", ("dialects/test_v1.py::test_a_1_0_reply_is_forgiven",)),
    Case(
        28,
        "0.3 parts without kind",
        ("dialects/test_vectors.py::test_the_canonical_message_writes_the_golden_body",),
    ),
    Case(29, "kind in replies of 1.0", ("dialects/test_v1.py::test_a_1_0_reply_is_forgiven",)),
    Case(30, "1.0 shapes with the states of 0.3", ("dialects/test_v1.py::test_a_1_0_reply_is_forgiven",)),
    Case(
        31, "JSON lines for a stream", ("client/test_streams.py::test_a_stream_is_read_in_every_form_that_peers_write",)
    ),
    Case(
        32,
        "a 401 on a stream reported as a wrong content type",
        (
            "client/test_streams.py::test_what_is_no_stream_raises_before_the_first_event",
            "gateway/test_gateway.py::test_a_stream_that_never_was_is_refused",
        ),
    ),
    Case(
        33,
        "a login page read as an empty stream",
        (
            "client/test_streams.py::test_what_is_no_stream_raises_before_the_first_event",
            "gateway/test_gateway.py::test_a_stream_that_never_was_is_refused",
        ),
    ),
    Case(
        34,
        "an error or a cut read as an empty stream",
        (
            "client/test_streams.py::test_an_incomplete_stream_never_ends_as_if_it_were_complete",
            "gateway/test_gateway.py::test_a_stream_that_the_upstream_breaks_never_ends_cleanly",
        ),
    ),
    Case(35, "events of several lines", ("protocol/test_sse.py::test_everything_that_the_format_allows_is_read",)),
    Case(
        36,
        "a page of a proxy, or of the server, for a large body",
        (
            "server/test_routes.py::test_a_large_body_is_served",
            "server/test_bad_input.py::test_a_body_beyond_the_limit_is_refused",
            "server/test_sockets.py::test_an_endless_body_is_refused_in_the_words_of_the_face",
            "client/test_http_calls.py::test_whatever_is_no_reply_becomes_a_typed_error_that_says_what_it_was",
        ),
    ),
)


@cache
def names_in(file: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    return frozenset(TEST.findall((TESTS / file).read_text()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.what}")
def test_a_case_is_held_by_tests_that_exist(case: Case) -> None:
    assert case.tests
    for one in case.tests:
        file, _, name = one.partition("::")
        assert name in names_in(file), f"{one} is gone: what holds case {case.number} now?"


def test_no_case_is_left_out() -> None:
    assert [case.number for case in CASES] == [*range(1, 37)]
