"""Translation bytes to bytes by a2a-sdk: its JSON reader and writer around the conversions of its 0.3 layer.

Reads lines ``{"kind", "direction", "body", "seconds"}``, answers each with ``{"us", "body"}``: CPU microseconds per
translation and the translated message. ``direction`` is ``down`` (1.0 to 0.3) or ``up``.
"""

import json
import sys
import time

from a2a.compat.v0_3 import conversions, types
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict


def message_down(body: bytes) -> bytes:
    reply = ParseDict(json.loads(body), a2a_pb2.SendMessageResponse())
    old = conversions.to_compat_message(reply.message)
    return old.model_dump_json(by_alias=True, exclude_none=True).encode()


def message_up(body: bytes) -> bytes:
    message = conversions.to_core_message(types.Message.model_validate_json(body))
    return json.dumps(MessageToDict(a2a_pb2.SendMessageResponse(message=message)), separators=(",", ":")).encode()


def task_down(body: bytes) -> bytes:
    old = conversions.to_compat_task(ParseDict(json.loads(body), a2a_pb2.Task()))
    return old.model_dump_json(by_alias=True, exclude_none=True).encode()


def task_up(body: bytes) -> bytes:
    task = conversions.to_core_task(types.Task.model_validate_json(body))
    return json.dumps(MessageToDict(task), separators=(",", ":")).encode()


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
