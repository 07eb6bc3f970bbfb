"""The bench's agent on a2a-sdk 0.3: JSON-RPC at /, HTTP+JSON under /v1, gRPC on a port of its own."""

import asyncio

import grpc
import httpx
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState, TransportProtocol
from a2a.utils import new_agent_text_message, new_task
from kit import hosting, vocabulary
from kit.vocabulary import Become, Give, GiveBack, Say
from translate import command, part_out

INTERRUPTED = {TaskState.input_required, TaskState.auth_required}


class Actor(AgentExecutor):
    """Acts the script out on the SDK's event queue."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, task = context.message, context.current_task
        resumed = task is not None and task.status.state in INTERRUPTED
        updater: TaskUpdater | None = None
        async for action in vocabulary.perform(command(message), resumed=resumed):
            if isinstance(action, Say):
                await event_queue.enqueue_event(new_agent_text_message(action.text, context_id=message.context_id))
                return
            if updater is None:
                if task is None:
                    task = new_task(message)
                    await event_queue.enqueue_event(task)
                updater = TaskUpdater(event_queue, task.id, task.context_id)
            await self._act(action, updater, message.parts)

    async def _act(self, action: Become | Give | GiveBack, updater: TaskUpdater, received: list) -> None:
        match action:
            case Become(state, text):
                state = TaskState(state)
                note = updater.new_agent_message([part_out({"text": text})]) if text else None
                await updater.update_status(state, note, final=state is TaskState.input_required)
            case Give(name, parts, append, last):
                parts = [part_out(part) for part in parts]
                await updater.add_artifact(parts, f"{name}-1", name, append=append, last_chunk=last)
            case GiveBack():
                await updater.add_artifact(list(received), "back-1", "back", last_chunk=True)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(places: hosting.Places) -> AgentCard:
    http = f"http://{places.public_http}"
    return AgentCard(
        name="bench agent on a2a-sdk 0.3",
        description="Does what it is told.",
        version="1",
        protocol_version="0.3.0",
        url=f"{http}/",
        preferred_transport=TransportProtocol.jsonrpc,
        additional_interfaces=[
            AgentInterface(transport=TransportProtocol.jsonrpc, url=f"{http}/"),
            AgentInterface(transport=TransportProtocol.http_json, url=http),
            AgentInterface(transport=TransportProtocol.grpc, url=places.public_grpc),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supports_authenticated_extended_card=True,
        skills=[skill("script")],
    )


def skill(name: str) -> AgentSkill:
    return AgentSkill(id=name, name=name, description="Acts out the bench's script.", tags=["bench"])


async def main() -> None:
    places = hosting.places()
    public = card(places)
    extended = public.model_copy(update={"skills": [*public.skills, skill(vocabulary.EXTENDED_SKILL)]})
    configs = InMemoryPushNotificationConfigStore()
    async with httpx.AsyncClient() as webhooks:
        handler = DefaultRequestHandler(
            Actor(),
            InMemoryTaskStore(),
            push_config_store=configs,
            push_sender=BasePushNotificationSender(webhooks, configs),
        )
        app = A2ARESTFastAPIApplication(public, handler, extended).build()
        A2AStarletteApplication(public, handler, extended).add_routes_to_app(app)
        server = grpc.aio.server()
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(extended, handler), server)
        interfaces = [
            {"protocolBinding": i.transport, "protocolVersion": "0.3", "url": i.url}
            for i in public.additional_interfaces
        ]
        await hosting.serve(places, app, server, interfaces)


if __name__ == "__main__":
    asyncio.run(main())
