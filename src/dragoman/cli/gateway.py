"""``dragoman gateway``: any A2A client to any A2A agent, or to many; ``dragoman gateway check``: what it would do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cyclopts import App
from msgspec.structs import replace

from ..errors import ConfigError, DragomanError
from ..gateway.agents import Agent
from ..gateway.catalogue import card_url
from ..gateway.common import Common, common_of
from ..gateway.config import Config, FilePath, Secret, Upstream, UpstreamTls, completed
from ..gateway.config.checks import complaints
from ..gateway.config.reading import Loaded, load, load_all
from ..gateway.plan import Planned, PlannedReplica, plan
from ..gateway.relay.callbacks import Before
from ..gateway.reload import Reloader
from ..gateway.switchboard import Switchboard
from .hosting import Ports, Serving, announce, host_until_stopped
from .merging import merged, server_of, unsaid
from .observing import Observing, logging_as, outlook
from .options import Calling, run_async
from .output import print_json, print_table, say

app = App(name="gateway", version_flags=())
app.command("dragoman.cli.health:health", name="health", version_flags=())
app.command("dragoman.cli.deliveries:app", name="deliveries")  # has commands of its own


@app.default
def gateway(
    *url: str,
    config: Path | None = None,
    upstream: str = "",
    serving: Serving = Serving(),  # noqa: B008 - immutable
    calling: Calling = Calling(),  # noqa: B008 - immutable
    forward: tuple[str, ...] = (),
    strict: bool = False,
    upstream_base64_files: bool | None = None,
    store: str = "",
    allow_private_webhooks: bool = False,
    allow_webhook: tuple[str, ...] = (),
    observing: Observing = Observing(),  # noqa: B008 - immutable
) -> None:
    """Stand in front of A2A agents, so that any A2A client can talk to them.

    Example: `dragoman gateway https://agent.example --upstream 0.3/JSONRPC`

    Parameters
    ----------
    url
        The agent's base URL, or the URL of its card. With several, each is served under a path of its own, /NAME;
        write NAME=URL to choose the name.
    config
        A TOML file that says all of this per agent, and more; see docs/gateway.md.
    upstream
        The agent's face to call, such as 0.3/JSONRPC; else the best one of its card.
    forward
        Name of a further header field of the caller that goes on to the agent; may be repeated.
    strict
        Take a request that names no version as 0.3 even if its method or route is one of 1.0.
    upstream_base64_files
        The agent keeps base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON; else it is learnt.
    store
        Where webhooks and seen tasks are kept: sqlite:PATH, postgresql://USER@HOST/NAME or memory; else a file in the
        state directory.
    allow_private_webhooks
        Call webhooks at private and loopback addresses too: for tests and closed networks.
    allow_webhook
        Host, .suffix, address or network where webhooks are called whatever address that is; may be repeated.
    """
    serving.check()
    if config is None:
        pattern = Upstream(
            url="",
            face=upstream,
            versions=serving.versions,
            bindings=serving.bindings,
            forward=forward,
            headers={name: Secret(value) for name, value in calling.headers.items()},
            tls=_tls(calling),
            base64_files=serving.base64_files,
            upstream_base64_files=upstream_base64_files,
            strict=strict,
        )
        found = _of_urls(url, pattern, serving)
        relay = replace(found.relay, allow=allow_webhook, allow_private=allow_private_webhooks)
        found = observing.over(_kept(replace(found, relay=relay), store))
        run_async(_one(found, serving) if len(url) == 1 else _many(found, serving))
        return
    if url:
        raise ConfigError("Give the agents in the file or on the command line, not both")
    unsaid(
        serving,
        calling,
        upstream,
        forward,
        strict,
        upstream_base64_files is not None,
        allow_private_webhooks,
        allow_webhook,
    )

    def loaded() -> tuple[Loaded, Serving]:
        found, files = load_all(config)
        listening = merged(found.server, serving)
        listening.check()
        found = observing.over(_kept(replace(found, server=server_of(listening, found.server)), store))
        return Loaded(found, files), listening

    first, listening = loaded()
    run_async(_many(first.config, listening, first, lambda: loaded()[0]))


@app.command
def check(*url: str, config: Path | None = None, json: bool = False) -> int:
    """Validate a configuration, fetch the agents' cards, and print the plan: which face is called, why, served where.

    Example: `dragoman gateway check --config gateway.toml`

    Parameters
    ----------
    url
        Agents as for the gateway itself, instead of a file.
    config
        The gateway's TOML file.
    json
        Print the plan as one JSON line.
    """
    if (config is None) == (not url):
        raise ConfigError("Give one of --config FILE and the URLs of agents")
    found = load(config) if config else _of_urls(url, Upstream(url=""), Serving())
    server = found.server
    base = server.public_url.rstrip("/") or f"{'https' if server.tls else 'http'}://{server.host}:{server.port}"
    lines, errors = run_async(_checked(found, base))
    if json:
        print_json({"agents": lines})
    else:
        _show(lines)
        _remark(lines)
    return _exit_code(errors)


def _of_urls(urls: tuple[str, ...], pattern: Upstream, serving: Serving) -> Config:
    """A configuration of the command line. Raises ``ConfigError``."""
    if not urls:
        raise ConfigError("Which agent? Give its URL, or a file with --config")
    if len(urls) > 1 and (pattern.headers or pattern.tls.cert):
        raise ConfigError("Credentials would go to every agent: give them per agent in a file, with --config")
    named = [_named(text) for text in urls]
    several = tuple(replace(pattern, name=name, url=url) for name, url in named)
    config = completed(Config(upstream=several, server=server_of(serving)))
    wrong = complaints(config)
    if wrong:
        raise ConfigError("; ".join(dict.fromkeys(f"{path[-1]}: {text}" for path, text in wrong)))
    return config


def _kept(config: Config, store: str) -> Config:
    """The configuration, with the store of the command line if that names one."""
    return replace(config, store=replace(config.store, url=store)) if store else config


def _named(text: str) -> tuple[str, str]:
    """``NAME=URL`` or a URL alone."""
    name, equals, url = text.partition("=")
    return (name, url) if equals and "://" in url and "://" not in name else ("", text)


def _tls(calling: Calling) -> UpstreamTls:
    tls = calling.tls
    ca, cert, key = (FilePath(str(one)) if one else None for one in (tls.ca, tls.cert, tls.key))
    return UpstreamTls(ca=ca, cert=cert, key=key)


async def _one(config: Config, serving: Serving) -> None:
    """The gateway of one URL: it must answer now."""
    with logging_as(config.observe) as tell:
        common = common_of(config, tell)
        await _one_of(common, Agent(config.upstream[0], common), config, serving)


async def _one_of(common: Common, agent: Agent, config: Config, serving: Serving) -> None:
    await common.open(config)
    relay = common.relay
    assert relay is not None  # it was opened
    try:
        await agent.reach()
        agent.start()
        client = agent.client
        assert client is not None  # it was reached
        title = f"{client.card.name} ({client.face} at {client.interface.url}) on every face"
        extra = {"upstream": {"face": str(client.face), "url": client.interface.url}}
        looks = outlook(config, common, lambda: (agent,))

        def started(url: str) -> None:
            relay.listens(url)
            announce(agent.app, url, as_json=serving.json, title=title, extra=extra)

        await host_until_stopped(Before(agent, relay, agent.end_streams), serving, started, outlook=looks)
    finally:
        await common.aclose()
        await agent.aclose()


async def _many(
    config: Config, serving: Serving, loaded: Loaded | None = None, load: Callable[[], Loaded] | None = None
) -> None:
    """The gateway of several: those that answer are served, the others are tried again. With ``load``, another
    configuration takes over when a file of ``loaded`` changes, and on SIGHUP."""
    with logging_as(config.observe) as tell:
        async with Switchboard(config, tell=tell) as board:
            looks = outlook(config, board.common, lambda: board.agents)
            asked = asyncio.Event()
            if load is not None:  # from now on: a SIGHUP that comes before there is anything to reload must not end us
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)

            def started(url: str) -> None:
                if board.common.relay is not None:
                    board.common.relay.listens(url)
                _announce(board, url, as_json=serving.json)

            async def keep_up(ports: Ports) -> None:
                if loaded is not None and load is not None:
                    ports_of, renewed = ports.adjust, ports.renew_tls
                    await Reloader(board, load, loaded, tell, ports=ports_of, renewed=renewed, asked=asked).run()

            await host_until_stopped(board, serving, started, board.beside, looks, keep_up)


def _announce(board: Switchboard, url: str, *, as_json: bool) -> None:
    base = board.public_url.rstrip("/") or url
    if as_json:
        print_json({"url": url, "agents": [_line(agent, base) for agent in board.agents]})
        return
    _show([plan(agent, base) for agent in board.agents])
    say(f"Catalogue: {base}/   Stop: Ctrl-C")


def _line(agent: Agent, base: str) -> dict[str, Any]:
    planned = plan(agent, base)
    upstream = {"face": planned.face, "url": planned.calls} if planned.face else {"url": planned.url}
    return {
        "name": planned.name,
        "path": planned.path,
        "card": card_url(agent, base),
        "upstream": {**upstream, "error": planned.error} if planned.error else upstream,
        "interfaces": planned.interfaces,
    }


async def _checked(config: Config, base: str) -> tuple[list[Planned], list[DragomanError]]:
    common = common_of(config)
    agents = [Agent(one, common) for one in config.upstream]
    try:
        found = await asyncio.gather(*(agent.reach() for agent in agents), return_exceptions=True)
        for one in found:
            if one is not None and not isinstance(one, DragomanError):
                raise one
        return [plan(agent, base) for agent in agents], [one for one in found if isinstance(one, DragomanError)]
    finally:
        await asyncio.gather(*(agent.aclose() for agent in agents))


def _exit_code(errors: list[DragomanError]) -> int:
    """That of the failures if they are of one kind, else that of findings."""
    from .main import EXIT_CODES, FINDINGS, OK

    codes = {next(code for kind, code in EXIT_CODES if isinstance(error, kind)) for error in errors}
    return codes.pop() if len(codes) == 1 else FINDINGS if codes else OK


def _show(lines: list[Planned]) -> None:
    columns = ("agent", "path", "gRPC by", "face called", "at", "why", "served")
    print_table("Plan", columns, [row for line in lines for row in (_row(line), *map(_replica_row, line.replicas))])


def _remark(lines: list[Planned]) -> None:
    for line in lines:
        for note in line.notes:
            say(f"note: {line.name}: {note}", style="yellow")
        if line.error:
            say(f"{line.name}: {line.error}", style="red")


def _replica_row(one: PlannedReplica) -> tuple[str, ...]:
    return "  replica", "", "", one.face or "unavailable", one.calls or one.url, one.error or "", ""


def _row(line: Planned) -> tuple[str, ...]:
    served = ", ".join(f"{one.protocol_version}/{one.protocol_binding}" for one in line.interfaces)
    called = line.face or "unavailable"
    return line.name, line.path, line.grpc or "-", called, line.calls or line.url, line.why or "-", served
