"""``dragoman gateway``: any A2A client to any A2A agent."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ..client.connect import connect
from ..faces import Face, rows
from ..gateway.gateway import Gateway
from ..server.app import A2AApp
from .hosting import host
from .options import chosen_faces, credentials, run_async
from .output import say


def gateway(
    url: str,
    *,
    upstream: str = "",
    host_: Annotated[str, Parameter(name="--host")] = "127.0.0.1",
    port: int = 8000,
    versions: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    bindings: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    public_url: str = "",
    trusted_proxy: tuple[str, ...] = (),
    header: Annotated[tuple[str, ...], Parameter(name=["--header", "-H"])] = (),
    bearer: str = "",
    forward: tuple[str, ...] = (),
    strict: bool = False,
    base64_files: bool = False,
    upstream_base64_files: bool = False,
    json: bool = False,
) -> None:
    """Stand in front of an A2A agent, so that any A2A client can talk to it.

    Example: `dragoman gateway https://agent.example --upstream 0.3/JSONRPC`

    Parameters
    ----------
    url
        The agent's base URL, or the URL of its card.
    upstream
        The agent's face to call, such as 0.3/JSONRPC; else the best one of its card.
    host_
        Address to listen on.
    port
        Port to listen on; 0 takes a free one.
    versions
        Serve only these protocol versions (0.3, 1.0).
    bindings
        Serve only these bindings (JSONRPC, GRPC, HTTP+JSON).
    public_url
        Where callers reach the gateway, for its card; else it is told from each request.
    trusted_proxy
        Address or network of a proxy whose Forwarded and X-Forwarded-* headers count.
    header
        NAME: VALUE to send with every call to the agent; may be repeated.
    bearer
        Bearer token for the agent; without it, each caller's own Authorization goes on.
    forward
        Name of a further header field of the caller that goes on to the agent; may be repeated.
    strict
        Take a request that names no version as 0.3 even if its method or route is one of 1.0.
    base64_files
        Callers keep base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON, as the SDKs for Python, Java
        and Go do.
    upstream_base64_files
        The agent does so.
    json
        Print the URLs of all faces as one JSON line.
    """
    faces = chosen_faces(versions, bindings)
    wanted = Face.parse(upstream) if upstream else None

    async def main() -> None:
        client = await connect(
            url,
            version=wanted.version if wanted else None,
            binding=wanted.binding if wanted else None,
            headers=credentials(header, bearer),
            base64_files=upstream_base64_files,
            on_note=lambda note: say(f"note: {note}", style="yellow"),
        )
        async with client:
            service = Gateway(client, forwarded=forward)
            app = A2AApp(
                service,
                service.card,
                faces=faces,
                public_url=public_url,
                trusted_proxies=trusted_proxy,
                lenient=not strict,
                rows=rows(base64_files=base64_files),
            )
            title = f"{client.card.name} ({client.face} at {client.interface.url}) on every face"
            extra = {"upstream": {"face": str(client.face), "url": client.interface.url}}
            await host(app, bind=host_, port=port, as_json=json, title=title, extra=extra)

    run_async(main())
