"""Streams over HTTP: every way in which peers write them, break them, and end them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import errors
from dragoman.client.client import Client, Resume, Timeouts, connect
from dragoman.model import StreamResponse
from tests.client.peers import (
    DONE,
    DONE_UPDATE,
    TASK,
    WORKING_UPDATE,
    Answer,
    Peer,
    Reply,
    card,
    events,
    interface,
    reply,
    rpc,
)

FAST = Resume(tries=3, wait=0.0)
NEVER = Resume(tries=0)
INFO = '"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org"'


async def client(peer: Peer, face: str = "1.0/JSONRPC", **more: Any) -> Client:
    return await connect(card(interface(f"{peer.url}/a2a", face)), **{"resume": NEVER, **more})


def sse(*data: str) -> str:
    return "".join(f"data: {one}\n\n" for one in data)


def jsonrpc(*results: str) -> str:
    return sse(*map(rpc, results))


def failure(code: int, text: str = "no") -> str:
    return f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{text}"}}}}'


def kinds(seen: list[StreamResponse]) -> list[str]:
    names = ("task", "message", "status_update", "artifact_update")
    return [next(name for name in names if getattr(event, name) is not None) for event in seen]


async def follow(agent: Client, *, task_id: str = "") -> list[StreamResponse]:
    stream = await agent.stream_text("hello", task_id=task_id)
    try:
        return [event async for event in stream]
    finally:
        await stream.aclose()


WHOLE = (f'{{"task":{TASK}}}', WORKING_UPDATE, DONE_UPDATE)
PRETTY = "\n".join(f"data: {line}" for line in json.dumps(json.loads(WHOLE[0]), indent=1).split("\n")) + "\n\n"
FORMS: list[tuple[str, str, Answer]] = [
    ("json-rpc", "1.0/JSONRPC", events(jsonrpc(*WHOLE))),
    ("bare events", "1.0/HTTP+JSON", events(sse(*WHOLE))),
    ("CRLF, comments, ids, names", "1.0/HTTP+JSON", events(
        ": hi\r\n\r\n" + "".join(f"id: {i}\r\nevent: up\r\nretry: 5\r\ndata:{x}\r\n\r\n" for i, x in enumerate(WHOLE))
    )),
    ("data on many lines", "1.0/HTTP+JSON", events(PRETTY + sse(*WHOLE[1:]))),
    ("parameters of the type", "1.0/HTTP+JSON", events(sse(*WHOLE), "text/event-stream; charset=utf-8")),
    ("newline-delimited", "1.0/HTTP+JSON", events("\n".join(WHOLE), "application/x-ndjson")),
    ("one array", "1.0/HTTP+JSON", reply(f"[{','.join(WHOLE)}]")),
    ("no type, event stream", "1.0/JSONRPC", events(jsonrpc(*WHOLE), "")),
    ("no type, array", "1.0/HTTP+JSON", events(f"[{','.join(WHOLE)}]", "")),
]  # fmt: skip


@pytest.mark.parametrize(("face", "answer"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS])
async def test_a_stream_is_read_in_every_form_that_peers_write(peer: Peer, face: str, answer: Answer) -> None:
    peer.plays(answer)
    async with await client(peer, face) as agent:
        assert kinds(await follow(agent)) == ["task", "status_update", "status_update"]
    assert "text/event-stream" in peer.asked[0].headers["accept"]


PAGE = "<html><form>Sign in</form></html>"
NO_STREAMS: list[tuple[str, Answer, type[Exception], str]] = [
    ("error as JSON", reply(failure(-32001, "gone")), errors.TaskNotFoundError, "gone"),
    ("error as first event", events(sse(failure(-32004, "none"))), errors.UnsupportedOperationError, "none"),
    ("error without type", events(failure(-32001, "gone"), ""), errors.TaskNotFoundError, "gone"),
    ("401", reply("", "", 401), errors.UnauthenticatedError, "401"),
    ("401 page", reply(PAGE, "text/html", 401), errors.UnauthenticatedError, "wants credentials"),
    ("login page", reply(PAGE, "text/html"), errors.PeerError, "login page"),
    ("login page as event stream", events(PAGE), errors.PeerError, "login page"),
    ("login page without type", events(PAGE, ""), errors.PeerError, "login page"),
    ("empty stream", events(""), errors.PeerError, "without an event"),
    ("only comments", events(": hi\n\n"), errors.PeerError, "without an event"),
    ("empty body", reply("", "application/json"), errors.PeerError, "an empty body where an event stream"),
    ("cut in the first event", events("data: {\"jsonrpc\""), errors.TransportError, "middle of an event"),
    ("413 page", reply(PAGE, "text/html", 413), errors.InvalidRequestError, "larger"),
    ("plain text", reply("hello", "text/plain"), errors.PeerError, "text/plain"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "text"), [row[1:] for row in NO_STREAMS], ids=[row[0] for row in NO_STREAMS]
)
async def test_what_is_no_stream_raises_before_the_first_event(
    peer: Peer, answer: Answer, kind: type[Exception], text: str
) -> None:
    peer.plays(answer)
    async with await client(peer) as agent:
        with pytest.raises(kind, match=text):
            await agent.stream_text("hello")
    assert len(peer.asked) == 1, "a message is never sent twice"


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        ("", errors.TransportError),
        ('data: {"jsonrpc"', errors.TransportError),
        (sse(failure(-32603, "crashed")), errors.InternalError),
        (sse("no json"), errors.PeerError),
    ],
)
async def test_an_incomplete_stream_never_ends_as_if_it_were_complete(
    peer: Peer, tail: str, kind: type[Exception]
) -> None:
    peer.plays(events(jsonrpc(WHOLE[0], WORKING_UPDATE) + tail))
    async with await client(peer) as agent:
        stream = await agent.stream_text("hello")
        seen = list(await stream.batch())
        with pytest.raises(kind):
            while True:
                seen += await stream.batch()
        await stream.aclose()
    assert kinds(seen) == ["task", "status_update"]


@pytest.mark.parametrize("end", ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_REJECTED"])
async def test_a_stream_may_end_where_its_task_rests(peer: Peer, end: str) -> None:
    peer.plays(events(jsonrpc(WHOLE[0], DONE_UPDATE.replace("TASK_STATE_COMPLETED", end))))
    async with await client(peer) as agent:
        assert kinds(await follow(agent)) == ["task", "status_update"]


async def test_a_lone_message_is_a_complete_stream(peer: Peer) -> None:
    message = '{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}'
    peer.plays(events(jsonrpc(message)))
    async with await client(peer) as agent:
        assert kinds(await follow(agent)) == ["message"]


async def test_silence_is_a_break(peer: Peer) -> None:
    peer.plays(events(jsonrpc(WHOLE[0]), hold=True))
    async with await client(peer, timeouts=Timeouts(silence=0.05)) as agent:
        stream = await agent.stream_text("hello")
        with pytest.raises(errors.TransportError, match="sent nothing"):
            [event async for event in stream]
        await stream.aclose()


async def test_closing_a_stream_hangs_up_on_the_peer(peer: Peer) -> None:
    hung_up = asyncio.Event()
    peer.plays(events(jsonrpc(WHOLE[0]), hold=True))
    peer.on_hang_up = hung_up.set
    async with await client(peer) as agent:
        stream = await agent.stream_text("hello")
        await stream.aclose()
        async with asyncio.timeout(5):
            await hung_up.wait()


# -- the first event


@pytest.mark.parametrize("face", ["1.0/JSONRPC", "0.3/JSONRPC"])
async def test_a_task_is_put_in_front_of_a_stream_that_begins_with_an_update(peer: Peer, face: str) -> None:
    old = '{"kind":"status-update","taskId":"t-1","contextId":"c-1","status":{"state":"completed"},"final":true}'
    peer.plays(events(jsonrpc(DONE_UPDATE if face.startswith("1.0") else old)))
    async with await client(peer, face) as agent:
        seen = await follow(agent)
    assert kinds(seen) == ["task", "status_update"]
    assert seen[0].task is not None and (seen[0].task.id, seen[0].task.context_id) == ("t-1", "c-1")
    assert len(peer.asked) == 1


async def test_the_task_in_front_of_an_old_tasks_stream_is_the_one_that_the_peer_has(peer: Peer) -> None:
    full = '{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"},"metadata":{"kept":true}}'
    peer.plays(events(jsonrpc(DONE_UPDATE)), reply(rpc(full)))
    async with await client(peer) as agent:
        seen = await follow(agent, task_id="t-1")
    assert seen[0].task is not None and seen[0].task.metadata == {"kept": True}
    assert b'"GetTask"' in peer.asked[1].body


async def test_final_ends_a_stream_of_0_3_even_if_the_peer_keeps_it_open(peer: Peer) -> None:
    final = '{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"working"},"final":true}'
    peer.plays(
        events(jsonrpc('{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}', final), hold=True)
    )
    async with await client(peer, "0.3/JSONRPC") as agent:
        assert kinds(await follow(agent)) == ["task", "status_update"]


# -- taking a stream up again


async def test_a_broken_stream_is_taken_up_again_by_subscribing(peer: Peer) -> None:
    cut = events(jsonrpc(WHOLE[0]))
    peer.plays(cut, cut, events(jsonrpc(WHOLE[0], DONE_UPDATE)))
    async with await client(peer, resume=FAST) as agent:
        assert kinds(await follow(agent)) == ["task", "status_update", "status_update", "status_update"]
    methods = [json.loads(asked.body)["method"] for asked in peer.asked]
    assert methods == ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]


async def test_a_task_that_ended_meanwhile_is_fetched_and_ends_the_stream(peer: Peer) -> None:
    done = DONE.replace('"status"', '"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}],"status"', 1)
    peer.plays(events(jsonrpc(WHOLE[0])), reply(failure(-32004)), reply(rpc(done)))
    async with await client(peer, resume=FAST) as agent:
        seen = await follow(agent)
    assert kinds(seen) == ["task", "artifact_update", "status_update"]
    assert [json.loads(asked.body)["method"] for asked in peer.asked][1:] == ["SubscribeToTask", "GetTask"]


async def test_a_task_that_goes_on_where_nobody_can_follow_it_raises_the_break(peer: Peer) -> None:
    working = '{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}'
    peer.plays(events(jsonrpc(WHOLE[0])), reply(failure(-32004)), reply(rpc(working)))
    async with await client(peer, resume=FAST) as agent:
        with pytest.raises(errors.TransportError, match="before its task came to rest"):
            await follow(agent)


async def test_a_task_that_is_gone_raises_the_break_itself(peer: Peer) -> None:
    peer.plays(events(jsonrpc(WHOLE[0])), reply(failure(-32001)))
    async with await client(peer, resume=FAST) as agent:
        with pytest.raises(errors.TransportError, match="before its task came to rest"):
            await follow(agent)


async def test_taking_up_a_stream_is_given_up_after_so_many_tries(peer: Peer) -> None:
    peer.plays(events(jsonrpc(WHOLE[0])))
    peer.otherwise = Reply(b"")
    async with await client(peer, resume=FAST) as agent:
        with pytest.raises(errors.TransportError):
            await follow(agent)
    assert len(peer.asked) == 1 + FAST.tries


async def test_a_line_that_does_not_end_is_silence(peer: Peer) -> None:
    gate = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ")
        while not gate.is_set():
            writer.write(b"x" * 100)
            try:
                await asyncio.wait_for(gate.wait(), 0.02)
            except TimeoutError:
                continue
        writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with await connect(
            card(interface(url, "1.0/HTTP+JSON")), resume=NEVER, timeouts=Timeouts(reply=30, silence=0.2)
        ) as agent:
            with pytest.raises(errors.TransportError, match="did not end a line"):
                await follow(agent)
    finally:
        gate.set()
        server.close()


async def test_taking_up_a_stream_takes_no_longer_than_one_call_may(peer: Peer) -> None:
    peer.plays(events(jsonrpc(WHOLE[0])))
    peer.otherwise = events("", hold=True)  # every later stream stays silent
    patient = Resume(tries=1_000, wait=0.0)
    async with await client(peer, resume=patient, timeouts=Timeouts(reply=0.5, silence=0.2)) as agent:
        with pytest.raises(errors.TransportError):
            await follow(agent)
    assert 1 < len(peer.asked) < 20


# -- SubscribeToTask over HTTP+JSON


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply('{"message":"Task not found"}', status=404), errors.TaskNotFoundError),
        (reply('{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}'), errors.TransportError),
        (reply("{}", status=503), errors.TransportError),
    ],
)
async def test_a_subscription_cut_before_its_first_event_is_told_from_an_unknown_task(
    peer: Peer, answer: Reply, error: type[Exception]
) -> None:
    cut = Reply(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    peer.plays(cut, answer)
    async with await client(peer, "0.3/HTTP+JSON") as agent:
        with pytest.raises(error):
            await agent.subscribe_to_task("t-1")
    assert [asked.path for asked in peer.asked] == ["/a2a/v1/tasks/t-1:subscribe", "/a2a/v1/tasks/t-1"]


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_subscribing_falls_back_to_post_and_remembers(peer: Peer, status: int) -> None:
    stream = events(sse(f'{{"task":{DONE}}}'))
    peer.plays(reply('{"detail":"Method Not Allowed"}', status=status), stream, stream)
    async with await client(peer, "1.0/HTTP+JSON") as agent:
        for _ in range(2):
            opened = await agent.subscribe_to_task("t/1")
            assert kinds([event async for event in opened]) == ["task"]
            await opened.aclose()
    assert [asked.method for asked in peer.asked] == ["GET", "POST", "POST"]
    assert {asked.path for asked in peer.asked} == {"/a2a/tasks/t%2F1:subscribe"}


async def test_subscribing_to_an_ended_task_is_not_repeated(peer: Peer) -> None:
    details = f'[{{{INFO},"reason":"UNSUPPORTED_OPERATION"}}]'
    peer.plays(reply(f'{{"error":{{"code":405,"message":"ended","details":{details}}}}}', status=405))
    async with await client(peer, "1.0/HTTP+JSON") as agent:
        with pytest.raises(errors.UnsupportedOperationError):
            await agent.subscribe_to_task("t-1")
    assert len(peer.asked) == 1
