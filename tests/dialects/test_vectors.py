"""Golden bodies read and write alike in every dialect."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format

from dragoman import model
from dragoman.dialects import v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from tests.dialects.vectors import CASES, SHAPES, Case, text
from tests.oracle import messages

EVERY = [
    pytest.param(case, shape, id=f"{case.op.name}-{case.side}-{case.name}-{shape}".replace(" ", "_"))
    for case in CASES
    for shape in case.bodies
]
#: Messages that 0.3 calls otherwise, per (operation, side).
PROTO_NAMES = {
    ("CreateTaskPushNotificationConfig", "request"): "CreateTaskPushNotificationConfigRequest",
    ("SubscribeToTask", "request"): "TaskSubscriptionRequest",
    ("ListTaskPushNotificationConfigs", "request"): "ListTaskPushNotificationConfigRequest",
    ("ListTaskPushNotificationConfigs", "reply"): "ListTaskPushNotificationConfigResponse",
    ("GetExtendedAgentCard", "request"): "GetAgentCardRequest",
}


@pytest.mark.parametrize(("case", "shape"), EVERY)
def test_a_golden_body_reads_as_the_canonical_message(case: Case, shape: str) -> None:
    notes = Notes()
    assert case.load(SHAPES[shape], text(case.bodies[shape]), notes) == case.canonical
    assert notes.forgiven == []
    assert notes.final is (case.final and shape != "1.0")


@pytest.mark.parametrize(("case", "shape"), EVERY)
def test_the_canonical_message_writes_the_golden_body(case: Case, shape: str) -> None:
    notes = Notes()
    assert case.dump(SHAPES[shape], case.canonical, notes) == text(case.bodies[shape])
    assert notes.lost == case.lost.get(shape, [])


def protobuf(case: Case, shape: str) -> tuple[Dialect, Any]:
    """The gRPC dialect of a shape, and the case's message in protobuf's own implementation."""
    kind = case.op.request if case.side == "request" else case.op.response
    if shape == "1.0":
        return v1.PROTOBUF, messages("1.0")[kind.__name__]()
    return v03_proto.PROTOBUF, messages("0.3")[PROTO_NAMES.get((case.op.name, case.side), kind.__name__)]()


IN_PROTOBUF = [
    pytest.param(case, shape, id=f"{case.op.name}-{case.side}-{case.name}-{shape}".replace(" ", "_"))
    for case in CASES
    for shape in case.bodies
    if shape != "kind" and (case.op is not model.DELETE_PUSH_CONFIG or case.side == "request")
]


@pytest.mark.parametrize(("case", "shape"), IN_PROTOBUF)
def test_grpc_carries_what_protobuf_makes_of_the_golden_json(case: Case, shape: str) -> None:
    dialect, theirs = protobuf(case, shape)
    json_format.ParseDict(case.bodies[shape], theirs)
    assert case.load(dialect, theirs.SerializeToString()) == case.canonical
    written = type(theirs).FromString(case.dump(dialect, case.canonical))
    assert written == theirs


@pytest.mark.parametrize("dialect", [v1.PROTOBUF, v03_proto.PROTOBUF])
def test_an_empty_reply_is_no_bytes_on_grpc(dialect: Dialect) -> None:
    assert dialect.dump_reply(model.DELETE_PUSH_CONFIG, None) == b""
    assert dialect.load_reply(model.DELETE_PUSH_CONFIG, b"") is None


def test_every_operation_and_side_has_a_golden_body() -> None:
    covered = {(case.op.name, case.side) for case in CASES}
    assert covered == {(name, side) for name in model.OPERATIONS for side in ("request", "reply")}


def test_every_shape_has_a_golden_body_for_every_operation_it_has() -> None:
    lacking = {"kind": {"ListTasks"}, "proto": {"ListTasks", "GetExtendedAgentCard"}}
    for shape in SHAPES:
        covered = {case.op.name for case in CASES if shape in case.bodies and case.side == "reply"}
        assert covered == set(model.OPERATIONS) - lacking.get(shape, set())
