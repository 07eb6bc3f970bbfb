"""What is measured, as one table: ``CASES``. A case has two sides, each a process under test and something to do to it.

Rules of this module:

- A side is a context manager; inside, it measures as often as it is asked, and gives a :class:`Sample` each time.
- Ratios: against a2a-sdk, how many times as much CPU it takes (more is better, the bar is a floor); against a bare
  server, how many times as much we take (less is better, the bar is a ceiling).
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from . import payloads
from .grpc_load import GrpcLoad
from .load import BadReply, HttpLoad, Load
from .payloads import Shot
from .processes import OTHERS, TESTED, Process, Server, bare, dragoman, peer, server
from .streams import StreamsLoad, enough_files

DEMO = "examples/demo.py:agent"
PACING = "bench/pacing.py:agent"


class Sample(NamedTuple):
    """One measurement: CPU microseconds per unit, how many units, bytes of one reply, the reply where it matters,
    bytes of memory per stream that was open."""

    us: float
    units: int
    size: int
    body: str = ""
    memory: int = 0


class Bench:
    """What the sides share: one event loop, and how long a run lasts in seconds."""

    def __init__(self, runner: asyncio.Runner, seconds: float) -> None:
        self.runner = runner
        self.seconds = seconds


Measure = Callable[[float], Sample]
Side = Callable[[Bench], AbstractContextManager[Measure]]
MakeLoad = Callable[[Server], Load]


class Case(NamedTuple):
    """Two sides and a bar. ``floor``: the ratio must be at least ``bar``, else at most; no bar: for information."""

    name: str
    title: str
    unit: str
    bar: float | None
    floor: bool
    ours: Side
    theirs: Side
    against: str


def _served(argv: Callable[[], tuple[str, ...]], load: MakeLoad) -> Side:
    """A server under load; its command line is made late, because that may install the peer."""

    @contextmanager
    def side(bench: Bench) -> Iterator[Measure]:
        with server(*argv()) as running, _loaded(bench, running, load) as measure:
            yield measure

    return side


def _behind(argv: Callable[[Server], tuple[str, ...]], load: MakeLoad, agent: str = DEMO) -> Side:
    """A proxy under load, with an agent of ours behind it on the other core."""

    @contextmanager
    def side(bench: Bench) -> Iterator[Measure]:
        with (
            server(*dragoman("serve", agent), core=OTHERS) as upstream,
            server(*argv(upstream)) as proxy,
            _loaded(bench, proxy, load) as measure,
        ):
            yield measure

    return side


@contextmanager
def _loaded(bench: Bench, running: Server, make: MakeLoad) -> Iterator[Measure]:
    async def made() -> Load:
        return make(running)  # inside the loop: grpc.aio takes the loop that runs

    load = bench.runner.run(made())

    def measure(seconds: float) -> Sample:
        before = running.cpu()
        tally = bench.runner.run(load.run(seconds))
        spent = running.cpu() - before
        held = (running.memory() - idle) // load.streams if isinstance(load, StreamsLoad) else 0
        return Sample(spent / tally.units * 1e6, tally.units, tally.size // tally.replies, memory=held)

    idle = running.memory()
    try:
        yield measure
    finally:
        bench.runner.run(load.close())


def _translated(argv: Callable[[], tuple[str, ...]], kind: str, direction: str) -> Side:
    """A process that translates one message over and over and reads its own CPU clock."""
    body = payloads.translation(kind, "1.0" if direction == "down" else "0.3").decode()

    @contextmanager
    def side(bench: Bench) -> Iterator[Measure]:
        process = Process(argv(), TESTED)

        def measure(seconds: float) -> Sample:
            process.tell({"kind": kind, "direction": direction, "body": body, "seconds": seconds})
            answer: dict[str, Any] = process.line(seconds * 5 + 30)
            return Sample(answer["us"], int(seconds * 1e6 / answer["us"]), len(answer["body"]), answer["body"])

        try:
            yield measure
        finally:
            process.close()

    return side


def _http(shot: Callable[[str], Shot], binding: str, version: str, connections: int = 16) -> MakeLoad:
    return lambda running: HttpLoad(shot(running.interface(binding, version)), connections)


def _get(running: Server) -> Load:
    """GetTask of a task that is made first."""
    url = running.interface("JSONRPC", "1.0")
    reply = json.loads(_once(payloads.send_rpc_1_0(url)))
    return HttpLoad(payloads.get_rpc_1_0(url, reply["result"]["task"]["id"]))


def _once(shot: Shot) -> bytes:
    """One request on a connection of its own; the body of its reply."""
    with socket.create_connection((shot.host, shot.port), timeout=30) as connection:
        connection.sendall(shot.bytes(0).replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = raw.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise BadReply(raw[:600].decode(errors="replace"))
    return body


def _grpc(running: Server) -> Load:
    request, marker = payloads.send_grpc_1_0()
    return GrpcLoad(running.interface("GRPC", "1.0"), "/lf.a2a.v1.A2AService/SendMessage", request, marker)


def _serve() -> tuple[str, ...]:
    return dragoman("serve", DEMO)


def _sdk(name: str, title: str, bar: float, load: MakeLoad, unit: str = "call") -> Case:
    theirs = _served(lambda: peer("a2a_sdk_server.py"), load)
    return Case(name, title, unit, bar, True, _served(_serve, load), theirs, "a2a-sdk")


def _translation(kind: str, direction: str, bar: float | None, title: str) -> Case:
    ours = _translated(lambda: (*bare()[:2], "bench.translate"), kind, direction)
    theirs = _translated(lambda: peer("a2a_sdk_translate.py"), kind, direction)
    return Case(f"{kind}-{direction}", title, "message", bar, True, ours, theirs, "a2a-sdk")


def _bare(name: str, title: str, bar: float, load: MakeLoad, shot: Callable[[str], Shot]) -> Case:
    theirs = _served(lambda: bare("constant"), lambda running: HttpLoad(shot(running.url + "/")))
    return Case(name, title, "call", bar, False, _served(_serve, load), theirs, "bare server")


def _gateway(name: str, title: str, bar: float, upstream: str) -> Case:
    def ours(behind: Server) -> tuple[str, ...]:
        return dragoman("gateway", behind.url + "/.well-known/agent-card.json", "--upstream", upstream)

    def theirs(behind: Server) -> tuple[str, ...]:
        return bare("forward", behind.interface("JSONRPC", "1.0"))

    call, plain = _http(payloads.send_rpc_1_0, "JSONRPC", "1.0"), _at_root(payloads.send_rpc_1_0)
    return Case(name, title, "call", bar, False, _behind(ours, call), _behind(theirs, plain), "bare pass-through")


def _observed(name: str, title: str, bar: float, upstream: str, *watching: str) -> Case:
    """The gateway that is watched against the one that is not."""

    def argv(*more: str) -> Callable[[Server], tuple[str, ...]]:
        return lambda behind: dragoman("gateway", behind.url, "--upstream", upstream, *more)

    call = _http(payloads.send_rpc_1_0, "JSONRPC", "1.0")
    ours, theirs = _behind(argv(*watching), call), _behind(argv(), call)
    return Case(name, title, "call", bar, False, ours, theirs, "the same unobserved")


def _many_streams(name: str, title: str, upstream: str, streams: int) -> Case:
    """The gateway, and the agent behind it without one."""

    def load(running: Server) -> Load:
        enough_files()
        return StreamsLoad(payloads.slow_rpc_1_0(running.interface("JSONRPC", "1.0")), streams)

    ours = _behind(lambda behind: dragoman("gateway", behind.url, "--upstream", upstream), load, PACING)
    theirs = _served(lambda: dragoman("serve", PACING), load)
    return Case(name, title, "event", None, False, ours, theirs, "the agent alone")


def _at_root(shot: Callable[[str], Shot]) -> MakeLoad:
    return lambda running: HttpLoad(shot(running.url + "/"))


_WATCHING = ("--metrics", "--log-calls", "--log-format", "json")
_SEND = _http(payloads.send_rpc_1_0, "JSONRPC", "1.0")

CASES: tuple[Case, ...] = (
    _sdk("send-jsonrpc", "SendMessage, 1.0 JSON-RPC", 30, _SEND),
    _sdk("send-rest", "SendMessage, 1.0 HTTP+JSON", 30, _http(payloads.send_rest_1_0, "HTTP+JSON", "1.0")),
    _sdk("send-grpc", "SendMessage, 1.0 gRPC", 20, _grpc),
    _sdk("send-0.3", "message/send, 0.3 JSON-RPC", 20, _http(payloads.send_rpc_0_3, "JSONRPC", "0.3")),
    _sdk("get-jsonrpc", "GetTask, 1.0 JSON-RPC", 6, _get),
    _sdk(
        "stream-jsonrpc",
        f"events of SendStreamingMessage ({payloads.CHUNKS} chunks), 1.0 JSON-RPC",
        15,
        _http(payloads.stream_rpc_1_0, "JSONRPC", "1.0", connections=4),
        "event",
    ),
    _translation("message", "down", None, "a message, 1.0 to 0.3"),
    _translation("message", "up", None, "a message, 0.3 to 1.0"),
    _translation("task", "down", 15, "a task of 50 messages, 1.0 to 0.3"),
    _translation("task", "up", 15, "a task of 50 messages, 0.3 to 1.0"),
    _bare("bare-send", "SendMessage, 1.0 JSON-RPC", 2.5, _SEND, payloads.send_rpc_1_0),
    _bare("bare-get", "GetTask, 1.0 JSON-RPC", 1.6, _get, lambda url: payloads.get_rpc_1_0(url, "x")),
    _gateway("gateway-translated", "gateway, 1.0 JSON-RPC to 0.3 JSON-RPC", 1.6, "0.3/JSONRPC"),
    _gateway("gateway-passed", "gateway, 1.0 JSON-RPC both sides", 1.2, "1.0/JSONRPC"),
    _observed("observed-metrics", "the translating gateway with metrics", 1.05, "0.3/JSONRPC", "--metrics"),
    _observed("observed-all", "with metrics and a record per call", 1.15, "0.3/JSONRPC", *_WATCHING),
    _observed("observed-passed", "the same where bytes pass", 1.2, "1.0/JSONRPC", *_WATCHING),
    _many_streams("streams-1000", "events of 1,000 streams at a time, to 0.3 JSON-RPC", "0.3/JSONRPC", 1_000),
)
