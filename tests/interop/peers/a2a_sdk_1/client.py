"""The client of a2a-sdk 1 as a driver of the bench, for both versions that it speaks."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any
from uuid import uuid4

import grpc
import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError
from kit import report
from kit.model import Event, Message, Outgoing, Page, PushConfig, Task, TypedError, Unavailable
from kit.options import Options, options
from translate import event_in, part_out, push_in, push_out, task_in

BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
TIMEOUT = 20.0


class Sdk1:
    def __init__(self, version: str, binding: str, unary: Client, streaming: Client) -> None:
        self.version, self.binding, self._unary, self._streaming = version, binding, unary, streaming

    def _request(self, outgoing: Outgoing) -> a2a.SendMessageRequest:
        message = a2a.Message(
            message_id=str(uuid4()),
            role=a2a.ROLE_USER,
            parts=[part_out(part) for part in outgoing.parts],
            task_id=outgoing.task_id or "",
            context_id=outgoing.context_id or "",
        )
        configuration = a2a.SendMessageConfiguration(return_immediately=not outgoing.wait)
        if outgoing.push:
            configuration.task_push_notification_config.CopyFrom(push_out(outgoing.push))
        return a2a.SendMessageRequest(message=message, configuration=configuration)

    async def send(self, outgoing: Outgoing) -> Task | Message:
        async for event in self._unary.send_message(self._request(outgoing)):
            return event_in(event)
        raise RuntimeError("no reply")

    async def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]:
        async for event in self._streaming.send_message(self._request(outgoing)):
            yield event_in(event)

    async def get(self, task_id: str) -> Task:
        return task_in(await self._unary.get_task(a2a.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id: str) -> Task:
        return task_in(await self._unary.cancel_task(a2a.CancelTaskRequest(id=task_id)))

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async for event in self._streaming.subscribe(a2a.SubscribeToTaskRequest(id=task_id)):
            yield event_in(event)

    async def list(self, context_id: str, page_size: int, page_token: str) -> Page:
        request = a2a.ListTasksRequest(context_id=context_id, page_size=page_size, page_token=page_token)
        reply = await self._unary.list_tasks(request)
        return Page([task_in(task) for task in reply.tasks], reply.next_page_token)

    async def push_create(self, task_id: str, config: PushConfig) -> PushConfig:
        return push_in(await self._unary.create_task_push_notification_config(push_out(config, task_id)))

    async def push_get(self, task_id: str, config_id: str) -> PushConfig:
        request = a2a.GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        return push_in(await self._unary.get_task_push_notification_config(request))

    async def push_list(self, task_id: str) -> Sequence[PushConfig]:
        request = a2a.ListTaskPushNotificationConfigsRequest(task_id=task_id)
        reply = await offered(self._unary.list_task_push_notification_configs(request))
        return [push_in(config) for config in reply.configs]

    async def push_delete(self, task_id: str, config_id: str) -> None:
        request = a2a.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await offered(self._unary.delete_task_push_notification_config(request))

    async def extended_card_skills(self) -> Sequence[str]:
        card = await self._unary.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())
        return [skill.id for skill in card.skills]

    def typed(self, error: BaseException) -> TypedError:
        name = type(error).__name__
        known = isinstance(error, A2AError) and not name.startswith("A2A")
        return TypedError(name.removesuffix("Error") if known else "untyped", f"{name}: {error}")


async def offered(call: Awaitable[Any]) -> Any:
    """Some calls are refused by the SDK itself, before anything is sent."""
    try:
        return await call
    except NotImplementedError as error:
        raise Unavailable(f"the SDK does not send it: {error}") from error


async def connect(given: Options) -> Sdk1:
    headers = {} if given.version == "any" else {"A2A-Version": given.version}
    async with httpx.AsyncClient(timeout=TIMEOUT, headers=headers) as http:
        card = await A2ACardResolver(http, given.url).get_agent_card()
    wanted = [
        interface
        for interface in card.supported_interfaces
        if given.binding in ("any", interface.protocol_binding)
        and (given.version == "any" or interface.protocol_version.startswith(given.version))
    ]
    if not wanted:
        raise LookupError(f"the card has no {given.version} {given.binding} interface")
    for interface in wanted:
        interface.url = given.routed(interface.url)
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(wanted)

    def client(streaming: bool) -> Client:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=httpx.AsyncClient(timeout=TIMEOUT),
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=BINDINGS if given.binding == "any" else [given.binding],
        )
        return ClientFactory(config).create(card)

    return Sdk1(given.version, given.binding, client(streaming=False), client(streaming=True))


async def main() -> int:
    given = options()
    try:
        driver = await connect(given)
    except Exception as error:
        report.broken(f"{type(error).__name__}: {error}")
    return await report.run(driver, given)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
