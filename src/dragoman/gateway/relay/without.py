"""Agents whose webhooks the gateway does not serve.

Rules of this module:

- *Direct*: a webhook is registered with the agent as it is, and gets what the agent sends. That is right for callers
  who speak the agent's version; others are told so before they wait for something that they could not read.
- *Off*: webhooks are refused, and the card does not promise any.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from msgspec.structs import replace

from ...dialects.base import Dialect
from ...errors import PushNotificationNotSupportedError
from ...model import GET_EXTENDED_AGENT_CARD, AgentCard, Req, Res, SendMessageRequest, Streaming, Unary
from ...protocol.operations import Version
from ...service import A2AService, AnyOperation, Context, EventStream
from ..layer import Layer
from .inline import PUSH, SENDS, Inline, inline_config


def brings_webhook(op: AnyOperation, request: Any) -> bool:
    """Whether an operation is about webhooks, or a send with one."""
    return op in PUSH or (op in SENDS and inline_config(cast(SendMessageRequest, request)) is not None)


class Direct(Layer):
    """Webhooks go to the agent as they are; ``version``: what it speaks at the moment."""

    def __init__(self, inner: A2AService, version: Callable[[], Version]) -> None:
        super().__init__(inner)
        self._version = version

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        self._refuse(op, request, ctx)
        return self.inner.call(op, request, ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        self._refuse(op, request, ctx)
        return self.inner.stream(op, request, ctx)

    def _refuse(self, op: AnyOperation, request: Any, ctx: Context) -> None:
        version = self._version()
        if ctx.version != version and brings_webhook(op, request):
            raise PushNotificationNotSupportedError(
                f"The agent behind this gateway speaks {version} and would notify in {version}: "
                f"register the webhook in {version}"
            )


class Off(Inline):
    """Webhooks are refused."""

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        if brings_webhook(op, request):
            raise PushNotificationNotSupportedError("This gateway serves no webhooks for this agent")
        call = self.inner.call(op, request, ctx)
        if op is GET_EXTENDED_AGENT_CARD:
            return cast("Coroutine[Any, Any, Res]", _silenced(cast("Coroutine[Any, Any, AgentCard]", call)))
        return call

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        if brings_webhook(op, request):
            raise PushNotificationNotSupportedError("This gateway serves no webhooks for this agent")
        return self.inner.stream(op, request, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for the card."""
        return op is not GET_EXTENDED_AGENT_CARD and super().passes(dialect, op)


async def _silenced(card: Coroutine[Any, Any, AgentCard]) -> AgentCard:
    return silent(await card)


def silent(card: AgentCard) -> AgentCard:
    """The card without the promise of notifications."""
    return replace(card, capabilities=replace(card.capabilities, push_notifications=False), signatures=())
