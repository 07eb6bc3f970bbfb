"""One plain ASGI app for all six faces: what a request is for, and in which version.

Rules of this module:

- The binding is read off the request: ``application/grpc`` or the path of an A2A service is gRPC, POST to the root
  is JSON-RPC, the well-known paths are the card, the rest is HTTP+JSON.
- The version is what the request asks for (``faces.negotiate``). With ``lenient``, a request that names none is also
  tried in the other version, so that an unambiguous method name or route decides; 0.3 comes first, because that is
  what no version means, and because ``/v1`` before a route is its prefix before it is the name of a 1.0 tenant.
- Nothing here knows a message: that is the exchange's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import parse_qs

from ..dialects.base import Notes
from ..dialects.files import Files
from ..errors import A2AError, MethodNotFoundError, VersionNotSupportedError
from ..faces import ALL_FACES, FACES, TWO_FORMS, Face, FaceRow, asked, negotiate
from ..model import GET_EXTENDED_AGENT_CARD, OPERATIONS, AgentCard, Streaming
from ..protocol.codec import Codec
from ..protocol.messages import Call, Headers, HttpRequest, HttpResponse, Rejected
from ..protocol.operations import EXTENSIONS_HEADER, GRPC_SERVICE, VERSIONS, Binding, Version
from ..protocol.refusals import MessageTooLargeError, VerbNotAllowedError
from ..security.callers import Callers
from ..service import ANONYMOUS, A2AService, Caller, Context
from .asgi import (
    CANCELS,
    BodyTooLargeError,
    DisconnectedError,
    Receive,
    Scope,
    Send,
    Watchdog,
    path_below_mount,
    read_body,
    send_response,
)
from .exchange import Desk, Exchange, Route
from .observing import Observer, Why
from .origin import base_url, checked_url, trusted_networks
from .published import CARD_PATHS, PublishedCard, grpc_target
from .services import services_beside

log = logging.getLogger(__name__)

_GRPC_PATHS: dict[str, Version] = {f"/{name}/": version for version, name in GRPC_SERVICE.items()}
_EXTENSIONS, _X_EXTENSIONS = (EXTENSIONS_HEADER[version].encode() for version in VERSIONS)
_NOTIFICATION = HttpResponse(204)
_ROOT = ("/", "")  # where JSON-RPC is
_STRANGERS = 64 * 1024  # bytes of body that are read of who is turned away, for the id to answer under


@dataclass(frozen=True, slots=True)
class AppLimits:
    """What one request may cost. ``body``: bytes. Seconds: ``keep_alive`` between signs of life on a quiet stream,
    ``watch`` between looks for callers that are gone."""

    body: int = 17 * 1024 * 1024
    keep_alive: float = 15.0
    watch: float = 1.0


class Refused(Exception):
    """Raised when a request ends before its operation is known; holds the response, and what was wrong."""

    def __init__(self, response: HttpResponse, why: Why = "request") -> None:
        super().__init__()
        self.response = response
        self.why: Why = why


class A2AApp:
    """An :class:`A2AService` on the wire.

    ``card``: what is published; its interfaces are replaced by ours. ``faces``: those served, in the order of the
    card. ``public_url``: where callers reach us, if it cannot be told from their requests. ``trusted_proxies``:
    addresses or networks whose forwarding headers count. ``lenient``: see the rules above. ``health`` and
    ``reflection``: answer those gRPC services too. ``grpc_at``: from our base URL to the ``host:port`` of gRPC, where
    that is another than the URL's, and ``grpc_tenant``: what the card says a 1.0 call over gRPC has to name.
    ``files``: how a caller keeps them over 0.3 gRPC and HTTP+JSON, where ``rows`` does not say it for all of them.
    ``callers``: verifies who is calling, default nobody; the public card stays public.
    ``observer``: watches every call. ``refuse_losses``: names of rows of ``dialects.losses``; a message that would meet
    one is refused. Use it as ASGI app, mounted or not; it needs no lifespan, and ends
    its streams properly on a lifespan shutdown or :meth:`aclose`.
    """

    def __init__(
        self,
        service: A2AService,
        card: AgentCard,
        *,
        faces: Iterable[Face] = ALL_FACES,
        public_url: str = "",
        trusted_proxies: Iterable[str] = (),
        lenient: bool = False,
        limits: AppLimits = AppLimits(),
        rows: Mapping[Face, FaceRow] = FACES,
        files: Callable[[Context], Files] | None = None,
        health: bool = False,
        reflection: bool = False,
        grpc_at: Callable[[str], str] = grpc_target,
        grpc_tenant: str = "",
        callers: Callers | None = None,
        observer: Observer | None = None,
        refuse_losses: Collection[str] = (),
    ) -> None:
        self.faces = tuple(faces)
        self.published = PublishedCard(card, self.faces, grpc_at, grpc_tenant)
        extensions = card.capabilities.extensions
        self.desk = Desk(
            service,
            publish=self.published.rewritten,
            required=frozenset(one.uri for one in extensions if one.required),
            keep_alive=limits.keep_alive,
            observer=observer,
            refuse_losses=refuse_losses,
        )
        self._declared = frozenset(one.uri for one in extensions)
        self._routes = {
            face: Route(face, *rows[face], face.version == "0.3" or face.binding == "GRPC") for face in self.faces
        }
        self._plain = _plain_routes(self._routes)
        self._served = _by_binding(self.faces)
        self.public_url = checked_url(public_url)
        self._trusted = trusted_networks(trusted_proxies)
        self._lenient = lenient
        self._limits = limits
        self._callers = callers
        self._files = files
        self._watchdog = Watchdog(limits.watch)
        self._services = services_beside(self.faces, health=health, reflection=reflection)
        self._aside = CARD_PATHS | self._services.methods.keys()

    async def __aenter__(self) -> A2AApp:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every open stream with an error that says so."""
        await asyncio.gather(self._services.aclose(), self.desk.close_streams())
        self._watchdog.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        path = path_below_mount(scope)
        if path in self._aside:
            await self._answer_aside(path, scope, headers, receive, send)
            return
        query = scope["query_string"]
        request = HttpRequest(scope["method"], path, query.decode("latin-1") if query else "", headers)
        binding = _binding_of(request)
        try:
            caller = ANONYMOUS if self._callers is None else await self._verified(binding, request, scope, receive)
            request.body = await read_body(receive, self._limits.body)
            route, call = self._read(binding, request)
        except BodyTooLargeError:
            self._tell("request")
            await send_response(send, self._too_large(binding, request))
        except Refused as refused:
            self._tell(refused.why)
            await send_response(send, refused.response)
        except DisconnectedError:
            log.debug("a caller went away before its request was complete")
        else:
            if binding == "JSONRPC" and not call.id:
                await send_response(send, _NOTIFICATION)  # it asks for no answer and gets no work done
                return
            ctx = self._context(route, call, headers, caller)
            if self._files is not None and route.face in TWO_FORMS:
                ctx.files = self._files(ctx)
                route = route._replace(dialect=TWO_FORMS[route.face].keeping(ctx.files))
            op = OPERATIONS[call.op]
            if op is GET_EXTENDED_AGENT_CARD:
                ctx.base_url = base_url(scope, headers, self.public_url, self._trusted)
            exchange = Exchange(self.desk, route, call, ctx, op, Notes() if route.noted else None)
            if CANCELS in scope.get("extensions", ()):
                await exchange.run(send)
            else:
                await self._watch(exchange, receive, send)

    async def _answer_aside(self, path: str, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if path not in CARD_PATHS:
            if self._callers is not None and (error := await _refusal(self._callers, headers, scope)):
                await send_response(send, FACES[Face("GRPC", "1.0")].codec.write_error(error))
                return
            await self._services.answer(path, scope, headers, receive, send)
            return
        base = base_url(scope, headers, self.public_url, self._trusted)
        told = bool(self._trusted) and not self.public_url
        await send_response(send, self.published.respond(scope["method"], headers, base, told=told))

    def _tell(self, why: Why) -> None:
        if self.desk.observer is not None:
            self.desk.observer.turned_away(why)

    async def _watch(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        """Run the exchange, and end it if its caller goes away: this server does not do that by itself."""
        watched = self._watchdog.enter(receive)
        try:
            await exchange.run(send)
        except asyncio.CancelledError:
            if not watched.gone:
                raise
        finally:
            self._watchdog.leave(watched)

    async def _verified(self, binding: Binding, request: HttpRequest, scope: Scope, receive: Receive) -> Caller:
        """Who is calling. Raises ``Refused`` with the answer to who may not, in its own face."""
        callers, headers = self._callers, request.headers
        assert callers is not None  # whoever calls this has looked
        caller = callers.known(headers, scope)
        if caller is not None:
            return caller
        try:
            return await callers.verify(headers, scope)
        except A2AError as error:
            raise Refused(await self._turned_away(binding, request, receive, error), "credentials") from None

    async def _turned_away(
        self, binding: Binding, request: HttpRequest, receive: Receive, error: A2AError
    ) -> HttpResponse:
        """The answer to who may not call. A stranger's body is read only as far as it takes to answer in its shape."""
        if binding != "GRPC" and _is_small(request.headers):
            try:
                request.body = await read_body(receive, _STRANGERS)
                route, call = self._read(binding, request)
            except (BodyTooLargeError, Refused):
                pass  # what is wrong with its request is not for a stranger to know
            else:
                if isinstance(OPERATIONS[call.op], Streaming):
                    return route.codec.refuse_stream(call, error)
                return route.codec.write_error(error, call.id or b"null")
        return _spokesman(binding, request).write_error(error)

    def _too_large(self, binding: Binding, request: HttpRequest) -> HttpResponse:
        error = MessageTooLargeError(f"The request body is larger than {self._limits.body} bytes")
        return _spokesman(binding, request).write_error(error)

    def _read(self, binding: Binding, request: HttpRequest) -> tuple[Route, Call]:
        """Find out in which version to read the request, and read it; what is plain goes the short way."""
        header = request.headers.get(b"a2a-version")
        route = None if request.query else self._plain.get((binding, header))
        if route is not None:
            try:
                return route, route.codec.read_call(request)
            except Rejected:
                pass  # the long way finds out what to say
        return self._read_slowly(binding, header, request)

    def _read_slowly(self, binding: Binding, header: bytes, request: HttpRequest) -> tuple[Route, Call]:
        query = _query_version(request.query)
        served = self._versions_at(binding, request.path)
        if not served:
            raise Refused(_spokesman(binding, request).write_error(self._not_here(binding, request.path)))
        if self._lenient and not asked(header, query):
            return self._read_as(binding, served[::-1], request)
        try:
            version = negotiate(header, query, served)
        except VersionNotSupportedError as error:
            raise self._refused_version(binding, request, error) from None
        return self._read_as(binding, (version,), request)

    def _versions_at(self, binding: Binding, path: str) -> tuple[Version, ...]:
        """A gRPC service is an interface of one version; the other bindings share their URL."""
        if binding == "HTTP+JSON" and path in _ROOT:
            return ()
        served = self._served.get(binding, ())
        named = _grpc_version(path) if binding == "GRPC" else None
        return served if named is None else tuple(version for version in served if version == named)

    def _not_here(self, binding: Binding, path: str) -> MethodNotFoundError:
        if path in _ROOT and "JSONRPC" in self._served:
            return VerbNotAllowedError("JSON-RPC calls are POST requests", allow=("POST",))
        return MethodNotFoundError(f"The {binding} binding is not served here; the agent card lists what is")

    def _read_as(self, binding: Binding, versions: tuple[Version, ...], request: HttpRequest) -> tuple[Route, Call]:
        """Read the request in the first version that knows its name; else the last one's complaint stands."""
        for version in versions:
            route = self._routes[Face(binding, version)]
            try:
                return route, route.codec.read_call(request)
            except Rejected as rejected:
                refused = Refused(route.codec.write_error(rejected.error, rejected.id))
                if not isinstance(rejected.error, MethodNotFoundError):
                    break
        raise refused

    def _refused_version(self, binding: Binding, request: HttpRequest, error: A2AError) -> Refused:
        """A version error is answered in the 1.0 shape, under the request's id if that can be read."""
        codec = FACES[Face(binding, _grpc_version(request.path) or "1.0")].codec
        try:
            return Refused(codec.write_error(error, codec.read_id(request)))
        except Rejected as rejected:
            return Refused(codec.write_error(rejected.error, rejected.id))

    def _context(self, route: Route, call: Call, headers: Headers, caller: Caller) -> Context:
        binding, version = route.face
        ctx = Context(version=version, binding=binding, tenant=call.tenant, headers=headers, caller=caller)
        fields = headers.fields()
        if _EXTENSIONS in fields or _X_EXTENSIONS in fields:
            ctx.extensions = extensions = _extensions(headers)
            ctx.activated = tuple(uri for uri in extensions if uri in self._declared)
        timeout = route.codec.read_timeout(headers)
        if timeout is not None:
            ctx.deadline = asyncio.get_running_loop().time() + timeout
        return ctx


async def _refusal(callers: Callers, headers: Headers, scope: Scope) -> A2AError | None:
    """Why a service beside A2A's own is not for whoever is calling, None if it is."""
    try:
        await callers.verify(headers, scope)
    except A2AError as error:
        return error
    return None


def _is_small(headers: Headers) -> bool:
    """Whether a body may be small, by what is said of its length."""
    length = headers.get(b"content-length")
    return len(length) < 8 and (not length.isdigit() or int(length) <= _STRANGERS)


def _by_binding(faces: Iterable[Face]) -> dict[Binding, tuple[Version, ...]]:
    served: dict[Binding, tuple[Version, ...]] = {}
    for face in sorted(faces, key=lambda face: VERSIONS.index(face.version)):
        served[face.binding] = (*served.get(face.binding, ()), face.version)
    return served


def _plain_routes(routes: Mapping[Face, Route]) -> dict[tuple[Binding, bytes], Route]:
    """What a version header in its plain form leads to; without one it is 0.3 (1.0 §3.6.2)."""
    plain = {(face.binding, face.version.encode()): route for face, route in routes.items()}
    return plain | {(face.binding, b""): route for face, route in routes.items() if face.version == "0.3"}


def _binding_of(request: HttpRequest) -> Binding:
    if request.path in _ROOT and request.method == "POST":
        return "JSONRPC"
    if request.headers.get(b"content-type").startswith(b"application/grpc") or _grpc_version(request.path):
        return "GRPC"
    return "HTTP+JSON"


def _grpc_version(path: str) -> Version | None:
    return next((version for prefix, version in _GRPC_PATHS.items() if path.startswith(prefix)), None)


def _spokesman(binding: Binding, request: HttpRequest) -> Codec:
    """The codec that answers a request which is not read: that of the version it asks for, if there is such a one."""
    version = _grpc_version(request.path)
    if version is None:
        try:
            version = negotiate(request.headers.get(b"a2a-version"), _query_version(request.query), VERSIONS)
        except VersionNotSupportedError:
            version = "1.0"
    return FACES[Face(binding, version)].codec


def _query_version(query: str) -> str:
    if "2" not in query or "ersion=" not in query:
        return ""
    fields = parse_qs(query)
    return next((fields[name][0] for name in ("A2A-Version", "a2a-version") if name in fields), "")


def _extensions(headers: Headers) -> tuple[str, ...]:
    """URIs of both spellings of the header, in order, each once."""
    current, old = headers.get(_EXTENSIONS), headers.get(_X_EXTENSIONS)
    listed = current + b"," + old
    return tuple(dict.fromkeys(uri for part in listed.decode("latin-1").split(",") if (uri := part.strip())))
