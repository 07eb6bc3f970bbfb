"""A configuration file and a command line: which of them says what.

Rules of this module:

- Where the gateway listens may be said in both; an option that is given wins over the file.
- What is about one agent is said in the file alone.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..gateway.config import Server
from .hosting import Serving
from .options import Calling


def merged(server: Server, serving: Serving) -> Serving:
    """What to serve: the file's word, less what the command line says otherwise."""
    defaults = Serving()
    said: dict[str, Any] = {
        field.name: getattr(serving, field.name)
        for field in fields(Serving)
        if getattr(serving, field.name) != getattr(defaults, field.name)
    }
    tls = server.tls
    written = Serving(
        host=server.host,
        port=server.port,
        public_url=server.public_url,
        trusted_proxy=server.trusted_proxies,
        health=server.health,
        reflection=server.reflection,
        tls_cert=Path(tls.cert.path) if tls else None,
        tls_key=Path(tls.key.path) if tls else None,
        tls_client_ca=Path(tls.client_ca.path) if tls and tls.client_ca else None,
        tls_require_client_cert=tls.require_client_cert if tls else False,
    )
    return replace(written, **said)


def server_of(serving: Serving, written: Server | None = None) -> Server:
    """The part of a configuration that agents have to know; ``written``: that of the file."""
    return Server(
        host=serving.address,
        port=serving.number,
        public_url=serving.public_url,
        trusted_proxies=serving.trusted_proxy,
        health=serving.health,
        reflection=serving.reflection,
        drain=written.drain if written else 0.0,
        tls=written.tls if written else None,
    )


def unsaid(serving: Serving, calling: Calling, *others: object) -> None:
    """Raise ``ConfigError`` if the command line says something that with a file is said per agent."""
    if calling != Calling() or serving.versions or serving.bindings or serving.base64_files is not None or any(others):
        raise ConfigError(
            "With --config, what is about an agent (faces, headers, credentials, files, strict) is said in the file"
        )
