"""The ASGI lifespan protocol, from the server's side. An app that does not speak it has no lifespan to wait for."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ..errors import ConfigError
from .asgi import App, Message

log = logging.getLogger(__name__)


class Lifespan:
    """One app from start to end; ``state`` is what the app wants every request to see."""

    def __init__(self, app: App, state: dict[str, Any]) -> None:
        self._app = app
        self._state = state
        self._asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> None:
        """Start the app. Raises ``ConfigError`` with its words if it says that it cannot."""
        self._task = asyncio.create_task(self._run(), name="dragoman-lifespan")
        answer = await self._ask("startup")
        if answer["type"] == "lifespan.startup.failed":
            raise ConfigError(f"The app failed to start: {answer.get('message', '')}")

    async def shutdown(self) -> None:
        """Let the app end what it started."""
        answer = await self._ask("shutdown")
        if answer["type"] == "lifespan.shutdown.failed":
            log.error("the app failed to end: %s", answer.get("message", ""))

    async def _ask(self, what: str) -> Message:
        assert self._task is not None
        self._asked.put_nowait({"type": f"lifespan.{what}"})
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        return {"type": ""}  # the app has ended without a word: it does not speak this protocol

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        try:
            await self._app(scope, self._asked.get, self._answer)
        except Exception as error:
            log.debug("the app has no lifespan: %r", error)

    async def _answer(self, message: Message) -> None:
        self._answers.put_nowait(message)
