"""What is recorded and counted of a call, on every face and however it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.config import Auth, Observe, Secret
from dragoman.gateway.config.auth import Key
from dragoman.gateway.telemetry.tallies import Histogram, Spread
from dragoman.model import GET_TASK, SEND_STREAMING_MESSAGE, GetTaskRequest
from dragoman.server.asgi import App, ClientDisconnectedError, Message, Receive, Scope, Send
from tests.server.callers import begin, good_call, send, sending, wire

from .conftest import Look

RPC = Face("JSONRPC", "1.0")


@pytest.mark.parametrize("upstream_face", ["1.0/JSONRPC", "0.3/JSONRPC", "0.3/GRPC", "1.0/HTTP+JSON"])
@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_a_call_is_recorded_with_its_faces_and_ids(look: Look, face: Face, upstream_face: str) -> None:
    async with look(face=upstream_face) as seen:
        task = await good_call(seen.board, face)
        (record,) = seen.records
        assert (record.upstream, record.operation, record.outcome) == ("alpha", "SendMessage", "ok")
        assert (record.face_in, record.face_out) == (str(face), upstream_face)
        assert record.ms > 0 and record.events is None
        passed_as_protobuf = str(face) == upstream_face == "1.0/GRPC"
        assert (record.task, record.context) == (("", "") if passed_as_protobuf else (task.id, task.context_id))
        counted = ("dragoman_calls_total", "alpha", "SendMessage", str(face), upstream_face, "ok")
        assert seen.readings()[counted] == 1


@pytest.mark.parametrize("face", [Face("JSONRPC", "1.0"), Face("HTTP+JSON", "0.3"), Face("GRPC", "0.3")], ids=str)
async def test_a_stream_is_recorded_once_it_has_ended_with_its_events(look: Look, face: Face) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        await send(seen.board, wire(face, SEND_STREAMING_MESSAGE, sending("hello")))
        (record,) = seen.records
        assert record.operation == "SendStreamingMessage" and record.outcome == "ok"
        assert record.events and record.events >= 3
        assert record.task and record.context
        assert seen.readings()["dragoman_streams_open", "alpha"] == 0
        found = seen.board.common.telemetry.readings()
        (events,) = [one for one in found if isinstance(one, Spread) and one.name == "dragoman_stream_events"]
        assert (sum(events.counts), events.total) == (1, record.events)


async def test_an_open_stream_is_in_flight_until_its_caller_goes_and_then_cancelled(look: Look) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        exchange = begin(seen.board, wire(RPC, SEND_STREAMING_MESSAGE, sending("hold")))
        running = asyncio.ensure_future(exchange.run())
        await seen.behind.behind.stage.begun.wait()
        assert seen.readings()["dragoman_streams_open", "alpha"] == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert seen.readings()["dragoman_streams_open", "alpha"] == 0
        assert seen.records[0].outcome == "cancelled"


async def test_an_error_is_recorded_by_its_name(look: Look) -> None:
    async with look() as seen:
        await send(seen.board, wire(RPC, GET_TASK, GetTaskRequest(id="gone")))
        (record,) = seen.records
        assert (record.outcome, record.task) == ("TaskNotFoundError", "gone")


async def test_a_message_that_cannot_be_read_is_a_call_that_failed(look: Look) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        good = wire(RPC, GET_TASK, GetTaskRequest(id="x"))
        await send(seen.board, good._replace(body=good.body.replace(b'"id":"x"', b'"id":{}')))
        (record,) = seen.records
        assert (record.operation, record.outcome) == ("GetTask", "InvalidParamsError")


async def test_what_never_became_a_call_is_counted_apart(look: Look) -> None:
    async with look() as seen:
        await send(seen.board, wire(RPC, GET_TASK, GetTaskRequest(id="x"))._replace(body=b"{"))
        assert seen.records == []
        assert seen.readings()["dragoman_turned_away_total", "alpha", "request"] == 1


async def test_losses_are_recorded_on_their_side(look: Look) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        await good_call(seen.board, Face("HTTP+JSON", "0.3"), "hello")
        request = wire(RPC, GET_TASK, GetTaskRequest(id="x", history_length=0, tenant="acme"))
        await send(seen.board, request)
        record = seen.records[-1]
        assert "tenant" in record.losses
        assert seen.readings()["dragoman_losses_total", "alpha", "tenant", "agent"] == 1


async def test_an_agent_that_is_away_is_counted_without_a_face() -> None:
    from dragoman.gateway.config import Config, Store, Upstream, completed
    from dragoman.gateway.switchboard import Switchboard

    away = Upstream(name="gone", url="http://127.0.0.1:9")
    async with Switchboard(
        completed(Config(upstream=(away,), observe=Observe(metrics=True), store=Store(url="memory")))
    ) as board:
        await send(board, wire(RPC, GET_TASK, GetTaskRequest(id="x")))
        readings = [one for one in board.common.telemetry.readings() if one.name == "dragoman_calls_total"]
        assert [one.labels[3:] for one in readings] == [("none", "UnavailableError")]


async def test_nobody_watches_where_nothing_is_asked_for(look: Look) -> None:
    async with look(Observe()) as seen:
        await good_call(seen.board, RPC)
        assert seen.records == []
        assert seen.board.agents[0].app.desk.observer is None


def test_a_histogram_counts_a_bound_in_its_own_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.add(value)
    assert histogram.read("x", ()) == Spread("x", (), (1.0, 2.0), (2, 2, 1), 14.0)


async def test_a_caller_who_leaves_while_an_event_is_written_is_cancelled_and_no_fault_of_ours(
    look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        request = wire(RPC, SEND_STREAMING_MESSAGE, sending("hello"))
        app: App = seen.board

        async def leaving(scope: Scope, receive: Receive, send: Send) -> None:
            async def gone(message: Message) -> None:
                if message["type"] == "http.response.body":
                    raise ClientDisconnectedError("the client has left")
                await send(message)

            with suppress(ClientDisconnectedError):
                await app(scope, receive, gone)

        await send(leaving, request)
        assert [one.outcome for one in seen.records] == ["cancelled"]
        assert seen.readings()["dragoman_streams_open", "alpha"] == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_callers_are_recorded_by_name_and_strangers_counted(look: Look) -> None:
    auth = Auth(key=(Key(name="ops", secret=Secret("k3y")),))
    async with look(auth=auth) as seen:
        get = wire(RPC, GET_TASK, GetTaskRequest(id="x"))
        assert (await send(seen.board, get)).status == 401
        await send(seen.board, get._replace(headers={**get.headers, "authorization": "Bearer k3y"}))
        assert [(one.caller, one.outcome) for one in seen.records] == [("ops", "TaskNotFoundError")]
        assert seen.readings()["dragoman_turned_away_total", "alpha", "credentials"] == 1
        assert "k3y" not in repr(seen.records)
