"""Translation bytes to bytes by a2a-sdk: the calls that its own server and client make for a unary reply, no more.

1.0 is read by json and ParseDict and written by MessageToDict and json; 0.3 is read by json and ``model_validate`` and
written by ``model_dump`` and json; between them stand the conversions of its 0.3 layer.

Reads lines ``{"kind", "direction", "body", "seconds"}``, answers each with ``{"us", "body"}``: CPU microseconds per
translation and the translated message. ``direction`` is ``down`` (1.0 to 0.3) or ``up``.
"""

import json
import sys
import time

from a2a.compat.v0_3 import conversions, types
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict


def printed(data) -> bytes:
    """As starlette's JSONResponse, which the SDK answers with."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def dumped(old) -> bytes:
    """As the SDK's 0.3 adapter writes a reply."""
    return printed(old.model_dump(mode="json", by_alias=True, exclude_none=True))


def message_down(body: bytes) -> bytes:
    return dumped(conversions.to_compat_message(ParseDict(json.loads(body), a2a_pb2.SendMessageResponse()).message))


def message_up(body: bytes) -> bytes:
    message = conversions.to_core_message(types.Message.model_validate(json.loads(body)))
    return printed(MessageToDict(a2a_pb2.SendMessageResponse(message=message)))


def task_down(body: bytes) -> bytes:
    return dumped(conversions.to_compat_task(ParseDict(json.loads(body), a2a_pb2.Task())))


def task_up(body: bytes) -> bytes:
    return printed(MessageToDict(conversions.to_core_task(types.Task.model_validate(json.loads(body)))))


WORK = {
    ("message", "down"): message_down,
    ("message", "up"): message_up,
    ("task", "down"): task_down,
    ("task", "up"): task_up,
}


def cpu_us(work, body: bytes, seconds: float) -> float:
    calls, started = 0, time.process_time()
    while (spent := time.process_time() - started) < seconds:
        for _ in range(20):
            work(body)
        calls += 20
    return spent / calls * 1e6


for line in sys.stdin:
    order = json.loads(line)
    work, body = WORK[order["kind"], order["direction"]], order["body"].encode()
    out = work(body)
    print(json.dumps({"us": cpu_us(work, body, order["seconds"]), "body": out.decode()}), flush=True)
