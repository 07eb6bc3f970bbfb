"""``dragoman gateway``: any A2A client to any A2A agent."""

from __future__ import annotations

from ..client.connect import connect
from ..faces import Face
from ..gateway.gateway import Gateway
from .hosting import Serving, host, make_app
from .options import Calling, run_async
from .output import say


def gateway(
    url: str,
    *,
    upstream: str = "",
    serving: Serving = Serving(),  # noqa: B008 - immutable
    calling: Calling = Calling(),  # noqa: B008 - immutable
    forward: tuple[str, ...] = (),
    strict: bool = False,
    upstream_base64_files: bool = False,
) -> None:
    """Stand in front of an A2A agent, so that any A2A client can talk to it.

    Example: `dragoman gateway https://agent.example --upstream 0.3/JSONRPC`

    Parameters
    ----------
    url
        The agent's base URL, or the URL of its card.
    upstream
        The agent's face to call, such as 0.3/JSONRPC; else the best one of its card.
    forward
        Name of a further header field of the caller that goes on to the agent; may be repeated.
    strict
        Take a request that names no version as 0.3 even if its method or route is one of 1.0.
    upstream_base64_files
        The agent keeps base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON.
    """
    serving.check()
    wanted = Face.parse(upstream) if upstream else None

    async def main() -> None:
        client = await connect(
            url,
            version=wanted.version if wanted else None,
            binding=wanted.binding if wanted else None,
            headers=calling.headers,
            tls=calling.tls,
            base64_files=upstream_base64_files,
            on_note=lambda note: say(f"note: {note}", style="yellow"),
        )
        async with client:
            service = Gateway(client, forwarded=forward)
            app = make_app(service, service.card, serving, lenient=not strict)
            title = f"{client.card.name} ({client.face} at {client.interface.url}) on every face"
            extra = {"upstream": {"face": str(client.face), "url": client.interface.url}}
            await host(app, serving, title=title, extra=extra)

    run_async(main())
