"""The client of a2a-sdk 0.3 as a driver of the bench."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

import grpc
import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from kit import report
from kit.model import Event, Message, Outgoing, Page, PushConfig, Task, TypedError, Unavailable
from kit.options import Options, options
from translate import event_in, part_out, push_config, push_in, push_out, task_in

JSONRPC = {
    -32001: "TaskNotFound",
    -32002: "TaskNotCancelable",
    -32003: "PushNotificationNotSupported",
    -32602: "InvalidParams",
}
HTTP = {404: "TaskNotFound", 409: "TaskNotCancelable", 422: "InvalidParams", 501: "PushNotificationNotSupported"}
BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
TIMEOUT = 20.0


class Sdk03:
    version = "0.3"

    def __init__(self, binding: str, unary: Client, streaming: Client, config: ClientConfig) -> None:
        self.binding, self._unary, self._streaming, self._config = binding, unary, streaming, config

    def _message(self, outgoing: Outgoing) -> a2a.Message:
        return a2a.Message(
            message_id=str(uuid4()),
            role=a2a.Role.user,
            parts=[part_out(part) for part in outgoing.parts],
            task_id=outgoing.task_id,
            context_id=outgoing.context_id,
        )

    def _configuration(self, outgoing: Outgoing) -> a2a.MessageSendConfiguration:
        """A push config goes by way of the client's own: one given with the call breaks gRPC and HTTP+JSON."""
        self._config.push_notification_configs = [push_config(outgoing.push)] if outgoing.push else []
        return a2a.MessageSendConfiguration(blocking=outgoing.wait)

    async def send(self, outgoing: Outgoing) -> Task | Message:
        events = self._unary.send_message(self._message(outgoing), configuration=self._configuration(outgoing))
        async for event in events:
            return event_in(event[0] if isinstance(event, tuple) else event)
        raise RuntimeError("no reply")

    async def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]:
        events = self._streaming.send_message(self._message(outgoing), configuration=self._configuration(outgoing))
        async for event in events:
            yield self._event(event)

    def _event(self, event) -> Event:
        """The SDK folds updates into a task; the update itself is what the bench wants to see."""
        return event_in(event[1] or event[0] if isinstance(event, tuple) else event)

    async def get(self, task_id: str) -> Task:
        return task_in(await self._unary.get_task(a2a.TaskQueryParams(id=task_id)))

    async def cancel(self, task_id: str) -> Task:
        return task_in(await self._unary.cancel_task(a2a.TaskIdParams(id=task_id)))

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async for event in self._streaming.resubscribe(a2a.TaskIdParams(id=task_id)):
            yield self._event(event)

    async def list(self, context_id: str, page_size: int, page_token: str) -> Page:
        raise Unavailable("0.3 has no ListTasks")

    async def push_create(self, task_id: str, config: PushConfig) -> PushConfig:
        return push_in(await self._unary.set_task_callback(push_out(task_id, config)))

    async def push_get(self, task_id: str, config_id: str) -> PushConfig:
        params = a2a.GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=config_id)
        return push_in(await self._unary.get_task_callback(params))

    async def push_list(self, task_id: str) -> Sequence[PushConfig]:
        raise Unavailable("the client of a2a-sdk 0.3 cannot list push configs")

    async def push_delete(self, task_id: str, config_id: str) -> None:
        raise Unavailable("the client of a2a-sdk 0.3 cannot delete push configs")

    async def extended_card_skills(self) -> Sequence[str]:
        return [skill.id for skill in (await self._unary.get_card()).skills]

    def typed(self, error: BaseException) -> TypedError:
        match error:
            case A2AClientJSONRPCError():
                return TypedError(JSONRPC.get(error.error.code, "untyped"), repr(error))
            case A2AClientHTTPError(status_code=status):
                return TypedError(HTTP.get(status, "untyped"), f"A2AClientHTTPError {status}")
            case grpc.aio.AioRpcError():
                name = re.match(r"(\w+)Error", error.details() or "")
                seen = f"AioRpcError {error.code().name} {error.details()!r}"
                return TypedError(name[1] if name else "untyped", seen)
        return TypedError("untyped", f"{type(error).__name__}: {error}")


async def connect(given: Options) -> Sdk03:
    def config(streaming: bool) -> ClientConfig:
        return ClientConfig(
            streaming=streaming,
            httpx_client=httpx.AsyncClient(timeout=TIMEOUT),
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_transports=BINDINGS if given.binding == "any" else [given.binding],
            use_client_preference=given.binding != "any",
        )

    async with httpx.AsyncClient(timeout=TIMEOUT) as http:
        card = await A2ACardResolver(http, given.url).get_agent_card()
    card.url = given.routed(card.url)
    for interface in card.additional_interfaces or []:
        interface.url = given.routed(interface.url)
    unary = config(streaming=False)
    return Sdk03(
        given.binding,
        ClientFactory(unary).create(card.model_copy()),
        ClientFactory(config(streaming=True)).create(card.model_copy()),
        unary,
    )


async def main() -> int:
    given = options()
    try:
        driver = await connect(given)
    except Exception as error:
        report.broken(f"{type(error).__name__}: {error}")
    return await report.run(driver, given)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
