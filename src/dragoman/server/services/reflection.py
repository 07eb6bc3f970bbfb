"""grpc.reflection: which gRPC services there are and what their messages look like, in both versions of the protocol.

A file is told together with those that it needs, so a client has to ask once. What cannot be answered is told in the
reply and not by the call's status: the stream goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any

from ...errors import GRPC_CODES
from ...protocol.descriptors import descriptor, symbols
from ...protocol.fields import table
from ...protocol.proto_files import REFLECTION_SERVICES, files, needed
from ...protocol.wire import WireFormat
from .calls import Method, Requests

Reply = dict[str, Any]


class Reflection:
    """The reflection service. ``services``: full names of all that are served beside it."""

    def __init__(self, services: Iterable[str]) -> None:
        wire = WireFormat(table("grpc.reflection"))
        self._read = wire.decoder("ServerReflectionRequest")
        self._write = wire.encoder("ServerReflectionResponse")
        self._services = sorted((*services, *REFLECTION_SERVICES))
        self._answers: dict[str, Callable[[str], Reply]] = {
            "listServices": self._list,
            "fileByFilename": self._by_name,
            "fileContainingSymbol": self._by_symbol,
        }

    @property
    def methods(self) -> Mapping[str, Method]:
        """Methods by path."""
        return {f"/{service}/ServerReflectionInfo": self._info for service in REFLECTION_SERVICES}

    async def _info(self, requests: Requests) -> AsyncGenerator[bytes, None]:
        async for message in requests:
            request = self._read(message)
            reply = {"validHost": request.get("host", ""), "originalRequest": request, **self._answer(request)}
            yield self._write(reply)

    def _answer(self, request: dict[str, Any]) -> Reply:
        asked = next((name for name in request if name != "host"), None)
        if asked is None:
            return _error("INVALID_ARGUMENT", "The request asks for nothing")
        answer = self._answers.get(asked)
        if answer is None:
            return _error("UNIMPLEMENTED", "proto3 messages have no extensions")
        return answer(request[asked])

    def _list(self, _: str) -> Reply:
        return {"listServicesResponse": {"service": [{"name": name} for name in self._services]}}

    def _by_name(self, name: str) -> Reply:
        if name not in files():
            return _error("NOT_FOUND", f"There is no file {name[:200]!r} here")
        return {"fileDescriptorResponse": {"fileDescriptorProto": [descriptor(one) for one in needed(name)]}}

    def _by_symbol(self, symbol: str) -> Reply:
        name = symbols().get(symbol.removeprefix("."))
        if name is None:
            return _error("NOT_FOUND", f"There is no symbol {symbol[:200]!r} here")
        return self._by_name(name)


def _error(status: str, text: str) -> Reply:
    return {"errorResponse": {"errorCode": GRPC_CODES[status], "errorMessage": text}}
