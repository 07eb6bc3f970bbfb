"""The bench's agent on a2a-sdk 1: both versions on JSON-RPC (/), HTTP+JSON (/ and /v1) and one gRPC port."""

import asyncio

import grpc
import httpx
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc
from kit import hosting, vocabulary
from kit.model import INTERRUPTED
from kit.vocabulary import Become, Give, GiveBack, Say
from starlette.applications import Starlette
from translate import command, part_out, state_in, state_out


class Actor(AgentExecutor):
    """Acts the script out on the SDK's event queue."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, task = context.message, context.current_task
        resumed = task is not None and state_in(task.status.state) in INTERRUPTED
        updater: TaskUpdater | None = None
        async for action in vocabulary.perform(command(message), resumed=resumed):
            if isinstance(action, Say):
                reply = new_text_message(action.text, context_id=message.context_id, role=a2a.ROLE_AGENT)
                await event_queue.enqueue_event(reply)
                return
            if updater is None:
                if task is None:
                    task = new_task_from_user_message(message)
                    await event_queue.enqueue_event(task)
                updater = TaskUpdater(event_queue, task.id, task.context_id)
            await self._act(action, updater, message.parts)

    async def _act(self, action: Become | Give | GiveBack, updater: TaskUpdater, received: list) -> None:
        match action:
            case Become(state, text):
                note = updater.new_agent_message([part_out({"text": text})]) if text else None
                await updater.update_status(state_out(state), note)
            case Give(name, parts, append, last):
                parts = [part_out(part) for part in parts]
                await updater.add_artifact(parts, f"{name}-1", name, append=append, last_chunk=last)
            case GiveBack():
                await updater.add_artifact(list(received), "back-1", "back", last_chunk=True)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(places: hosting.Places) -> a2a.AgentCard:
    http, target = f"http://{places.public_http}", places.public_grpc
    return a2a.AgentCard(
        name="bench agent on a2a-sdk 1",
        description="Does what it is told.",
        version="1",
        supported_interfaces=[
            a2a.AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for version in ("1.0", "0.3")
            for binding, url in (("JSONRPC", f"{http}/"), ("HTTP+JSON", http), ("GRPC", target))
        ],
        capabilities=a2a.AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill("script")],
    )


def skill(name: str) -> a2a.AgentSkill:
    return a2a.AgentSkill(id=name, name=name, description="Acts out the bench's script.", tags=["bench"])


async def main() -> None:
    places = hosting.places()
    public = card(places)
    extended = a2a.AgentCard()
    extended.CopyFrom(public)
    extended.skills.append(skill(vocabulary.EXTENDED_SKILL))
    configs = InMemoryPushNotificationConfigStore()
    async with httpx.AsyncClient() as webhooks:
        handler = DefaultRequestHandler(
            Actor(),
            InMemoryTaskStore(),
            public,
            push_config_store=configs,
            push_sender=BasePushNotificationSender(webhooks, configs),
            extended_agent_card=extended,
        )
        app = Starlette(
            routes=[
                *create_agent_card_routes(public),
                *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
                *create_rest_routes(handler, enable_v0_3_compat=True),
            ]
        )
        server = grpc.aio.server()
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
        a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
        interfaces = [
            {"protocolBinding": i.protocol_binding, "protocolVersion": i.protocol_version, "url": i.url}
            for i in public.supported_interfaces
        ]
        await hosting.serve(places, app, server, interfaces)


if __name__ == "__main__":
    asyncio.run(main())
