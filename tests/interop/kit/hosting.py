"""How an agent of the bench is started: its options, its sockets, and the one line that says it is ready."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Places:
    """Where an agent listens, and what its card says (a recorder may stand in front)."""

    http: socket.socket
    authority: str
    grpc_port: int
    public_http: str
    public_grpc: str


def places() -> Places:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--grpc-port", type=int, default=0)
    parser.add_argument("--public-http", help="authority that the card names for the HTTP faces")
    parser.add_argument("--public-grpc", help="authority that the card names for the gRPC faces")
    options = parser.parse_args()
    http = _bound(options.port)
    with _bound(options.grpc_port) as probe:
        grpc_port = probe.getsockname()[1]
    authority = f"127.0.0.1:{http.getsockname()[1]}"
    return Places(
        http,
        authority,
        grpc_port,
        options.public_http or authority,
        options.public_grpc or f"127.0.0.1:{grpc_port}",
    )


def _bound(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


def ready(places: Places, interfaces: Sequence[Mapping[str, str]] = (), path: str = "") -> None:
    line = {
        "url": f"http://{places.public_http}{path}",
        "card": f"http://{places.public_http}{path}/.well-known/agent-card.json",
        "http": places.authority,
        "grpc": f"127.0.0.1:{places.grpc_port}",
        "interfaces": list(interfaces),
    }
    print(json.dumps(line), flush=True)


async def serve(
    places: Places,
    app: Any,
    grpc_server: Any = None,
    interfaces: Sequence[Mapping[str, str]] = (),
    *,
    path: str = "",
    bound: bool = False,
) -> None:
    """Serve the HTTP app with uvicorn and the gRPC server next to it, until told to stop.

    `path`: where below the authority the card is; `bound`: the gRPC server has its port already.
    """
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    if grpc_server and not bound and grpc_server.add_insecure_port(f"127.0.0.1:{places.grpc_port}") == 0:
        raise SystemExit("the gRPC port was taken in the meantime")
    if grpc_server:
        await grpc_server.start()
    places.http.listen()
    ready(places, interfaces, path)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    serving = asyncio.create_task(server.serve(sockets=[places.http]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    if grpc_server:
        await grpc_server.stop(0.5)
    await serving
