"""The demo agent on a2a-sdk, as lean as its own idioms allow: runs in the environment that the benchmark makes for it.

One process serves JSON-RPC and HTTP+JSON (1.0 and 0.3, uvicorn on uvloop and httptools) and gRPC 1.0 (grpc.aio).
The first word of the text is obeyed: ``echo X`` gives a completed task with X as its artifact, ``chunks N`` streams
an artifact in N pieces. Prints one line of JSON on standard output once it is ready.
"""

import asyncio
import json
import logging
import socket

import grpc.aio
import uvicorn
import uvloop
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2, a2a_pb2_grpc
from starlette.applications import Starlette

HOST = "127.0.0.1"


class Demo(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        word, _, rest = context.get_user_input().partition(" ")
        if word == "chunks":
            await self._chunks(updater, int(rest))
        else:
            await updater.add_artifact([new_text_part(rest)], artifact_id="echo", name="echo")
        await updater.complete()

    async def _chunks(self, updater: TaskUpdater, count: int) -> None:
        for n in range(count):
            part = new_text_part(f"chunk {n}")
            await updater.add_artifact([part], artifact_id="chunks", append=n > 0, last_chunk=n == count - 1)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def card(http: str, grpc_target: str) -> a2a_pb2.AgentCard:
    rows = [
        ("JSONRPC", "1.0", http + "/"),
        ("HTTP+JSON", "1.0", http),
        ("GRPC", "1.0", grpc_target),
        ("JSONRPC", "0.3", http + "/"),
    ]
    return a2a_pb2.AgentCard(
        name="demo",
        description="Obeys the first word.",
        version="1",
        capabilities=a2a_pb2.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[a2a_pb2.AgentSkill(id="demo", name="demo", description="demo", tags=["demo"])],
        supported_interfaces=[
            a2a_pb2.AgentInterface(protocol_binding=binding, protocol_version=version, url=url)
            for binding, version, url in rows
        ],
    )


async def main() -> None:
    listener = socket.create_server((HOST, 0), backlog=512)
    http = f"http://{HOST}:{listener.getsockname()[1]}"
    grpc_server = grpc.aio.server()
    grpc_target = f"{HOST}:{grpc_server.add_insecure_port(f'{HOST}:0')}"
    agent_card = card(http, grpc_target)
    handler = DefaultRequestHandler(Demo(), InMemoryTaskStore(), agent_card)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), grpc_server)
    app = Starlette(
        routes=[
            *create_agent_card_routes(agent_card),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True),
        ]
    )
    config = uvicorn.Config(app, http="httptools", log_level="warning", access_log=False, lifespan="off")
    await grpc_server.start()
    serving = asyncio.create_task(uvicorn.Server(config).serve(sockets=[listener]))
    interfaces = [
        {"protocolBinding": i.protocol_binding, "protocolVersion": i.protocol_version, "url": i.url}
        for i in agent_card.supported_interfaces
    ]
    print(json.dumps({"url": http, "interfaces": interfaces}), flush=True)
    await serving
    await grpc_server.stop(0)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main())
