"""Translation bytes to bytes by this project's dialects; the same conversation in lines as the peer's script.

Reads lines ``{"kind", "direction", "body", "seconds"}``, answers each with ``{"us", "body"}``: CPU microseconds per
translation and the translated message. ``direction`` is ``down`` (1.0 to 0.3) or ``up``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import dragoman.dialects.v03 as v03
import dragoman.dialects.v1 as v1
from dragoman.model import GET_TASK, SEND_MESSAGE, Operation

OPERATIONS: dict[str, Operation[Any, Any]] = {"message": SEND_MESSAGE, "task": GET_TASK}


def translator(kind: str, direction: str) -> Callable[[bytes], bytes]:
    """A function from message bytes of one version to those of the other."""
    op = OPERATIONS[kind]
    source, target = (v1.JSON, v03.JSON) if direction == "down" else (v03.JSON, v1.JSON)
    load, dump = source.load_reply, target.dump_reply
    return lambda body: dump(op, load(op, body))


def cpu_us(work: Callable[[bytes], bytes], body: bytes, seconds: float) -> float:
    """CPU microseconds per call over ``seconds`` of CPU time."""
    calls, spent, started = 0, 0.0, time.process_time()
    while spent < seconds:
        for _ in range(20):
            work(body)
        calls += 20
        spent = time.process_time() - started
    return spent / calls * 1e6


def main() -> None:
    """Answer orders until standard input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        work, body = translator(order["kind"], order["direction"]), order["body"].encode()
        out = work(body).decode()
        print(json.dumps({"us": cpu_us(work, body, order["seconds"]), "body": out}), flush=True)


if __name__ == "__main__":
    main()
