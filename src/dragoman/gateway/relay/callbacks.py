"""Where agents post their notifications to: an ASGI app over the relay.

Rules of this module:

- A notification is put down before it is acknowledged: 200 says that it cannot get lost any more.
- Who shows no secret is asked for one, whatever the address. Who shows a wrong one, or has a wrong address, gets the
  same answer, so that nothing can be learnt by trying. Nothing of a stranger's body is read.
- Only what the agent can mend is called its mistake (400, 413, 415); what is ours is 503, for it to come again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable

from ...errors import InvalidParamsError, PeerError, UnavailableError
from ...protocol.messages import Headers, HttpResponse
from ...server.asgi import (
    App,
    BodyTooLargeError,
    DisconnectedError,
    Receive,
    Scope,
    Send,
    path_below_mount,
    read_body,
    send_response,
)
from ...store.outbox import Watch
from .reading import digest, proves, read_notification, shown, task_of
from .relay import CALLBACKS, Relay
from .telling import Heard, Misdirected

log = logging.getLogger("dragoman.relay")

_REFERENCE = re.compile(r"[A-Za-z0-9_-]{43}")
_UNKNOWN = "there is no such callback"
_LIMIT = 17 * 1024 * 1024


def is_callback(scope: Scope) -> bool:
    """Whether an HTTP request is for :class:`Callbacks`."""
    return CALLBACKS in scope["path"] and path_below_mount(scope).startswith(CALLBACKS)


class Refusal(Exception):
    """Raised for what is not accepted; holds the answer."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.response = HttpResponse(
            status, [(b"content-type", b"text/plain; charset=utf-8"), *headers, _length(text)], text.encode()
        )


def _length(text: str) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % len(text.encode())


def _not_now() -> HttpResponse:
    return Refusal(503, "cannot be put down now", (b"retry-after", b"1")).response


class Callbacks:
    """Takes notifications. ``limit``: bytes of one."""

    def __init__(self, relay: Relay, *, limit: int = _LIMIT) -> None:
        self._relay = relay
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        try:
            await self._take(scope, receive)
            response = HttpResponse(200, [(b"content-length", b"0")])
        except Refusal as refusal:
            self._relay.counts.refused += 1
            response = refusal.response
        except DisconnectedError:
            return
        except InvalidParamsError as error:  # whatever it is, it stays so
            log.warning("A notification cannot be kept: %s", error)
            response = Refusal(400, error.message).response
        except UnavailableError as error:
            log.warning("A notification cannot be put down now: %s", error)
            response = _not_now()
        except Exception as error:  # in a line, for an agent may come again and again
            log.error("A notification could not be put down: %r", error)
            response = _not_now()
        await send_response(send, response)

    async def _take(self, scope: Scope, receive: Receive) -> None:
        if scope["method"] != "POST":
            raise Refusal(405, "notifications are posted", (b"allow", b"POST"))
        watch = await self._watch(path_below_mount(scope)[len(CALLBACKS) :], Headers(scope["headers"]))
        body = await self._body(scope, receive)
        try:
            event = read_notification(body)
        except PeerError as error:
            log.warning("A notification of %s cannot be understood: %s", watch.scope.agent, error)
            raise Refusal(400, str(error)) from error
        heard = Heard(event, digest(body), self._relay.forms, self._relay.queue)
        try:
            await self._relay.outbox.change(watch.id, heard)
        except Misdirected as error:
            log.warning("A notification of %s %s", watch.scope.agent, error)
            raise Refusal(403, f"this notification {error}") from error
        if not heard.asked:
            self._relay.forget(watch.reference)
            raise Refusal(404, _UNKNOWN)
        self._heard(watch, heard)

    async def _watch(self, reference: str, headers: Headers) -> Watch:
        given = shown(headers)
        if not given:
            raise Refusal(401, "show the token of this callback", (b"www-authenticate", b"Bearer"))
        watch = await self._relay.watch(digest(reference)) if _REFERENCE.fullmatch(reference) else None
        if watch is None or not proves(given, watch.secret):
            raise Refusal(404, _UNKNOWN)
        return watch

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        media = Headers(scope["headers"]).get(b"content-type").partition(b";")[0].strip().lower()
        if media and media != b"application/json" and not media.endswith(b"+json"):
            raise Refusal(415, "notifications are JSON")
        try:
            return await read_body(receive, self._limit)
        except BodyTooLargeError:
            raise Refusal(413, f"a notification has at most {self._limit} bytes") from None

    def _heard(self, watch: Watch, heard: Heard) -> None:
        relay, counts = self._relay, self._relay.counts
        counts.accepted += 1
        counts.coalesced += heard.coalesced
        if heard.task is None and not heard.told:
            counts.repeated += 1
            return
        relay.stir()
        if heard.task is None:
            return
        for told in relay.told:
            told(watch, heard.task)
        if heard.ended and (remove := relay.removing.get(watch.scope.agent)) is not None:
            relay.background.start(remove(watch, task_of(heard.event)), "forget-callback")


class Before:
    """An app with the callback address before it. ``close`` ends the app's streams."""

    def __init__(self, app: App, relay: Relay, close: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._callbacks = Callbacks(relay)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        app = self._callbacks if scope["type"] == "http" and is_callback(scope) else self._app
        await app(scope, receive, send)

    async def aclose(self) -> None:
        """End the app's streams."""
        await self._close()
