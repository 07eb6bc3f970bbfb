"""What an agent really speaks over JSON-RPC: one outcome, whose detail says it.

The card tells where to ask. Both versions are asked the same with the method of their own; the shape of the reply says
which version answered, whatever the card says.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any
from uuid import uuid4

from .kit import report
from .kit.report import Outcome
from .kit.talk import TOLD

LIMIT = 10.0
#: Old method and new, with the parameters and the header field that belong to it.
ASKED = {
    "message/send": ({"kind": "message", "role": "user", "parts": [{"kind": "text", "text": TOLD}]}, {}),
    "SendMessage": ({"role": "ROLE_USER", "parts": [{"text": TOLD}]}, {"A2A-Version": "1.0"}),
}


def fetch(url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status and text; 0 and the reason if there was no reply."""
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, given), timeout=LIMIT) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return 0, "no answer" if isinstance(error, TimeoutError) else str(error)


def card_says(card: dict[str, Any]) -> str:
    old = [card["protocolVersion"]] if "protocolVersion" in card else []
    new = [
        f"{one.get('protocolBinding', '?')} {one.get('protocolVersion', 'of no version')}"
        for one in card.get("supportedInterfaces", ())
    ]
    others = [f"{one.get('transport', '?')}" for one in card.get("additionalInterfaces") or ()]
    told = [*(f"{version} {card.get('preferredTransport', 'JSONRPC')}" for version in old), *others, *new]
    return ", ".join(dict.fromkeys(told)) or "nothing"


def endpoint(card: dict[str, Any]) -> str | None:
    """Where the card says that JSON-RPC is."""
    for one in card.get("supportedInterfaces", ()):
        if one.get("protocolBinding") == "JSONRPC":
            return str(one["url"])
    return card.get("url")


def shape(text: str) -> str:
    """Which version a reply is written in: the wrapped result and the spelling of states are 1.0, `kind` is 0.3."""
    try:
        reply = json.loads(text)
    except ValueError:
        return f"no JSON: {text[:40]!r}"
    if "error" in reply or "result" not in reply:
        error = reply.get("error", reply)
        return f"error {error.get('code', '')}".strip() if isinstance(error, dict) else f"error {error}"
    result = reply["result"]
    wrapped = bool(result.keys() & {"task", "message"})
    inner = result.get("task") or result.get("message") or result
    if not isinstance(inner, dict):
        inner = result
    marks = ["wrapped" if wrapped else "bare"]
    marks += ["kind"] if '"kind"' in text else []
    marks += ["enums of 1.0"] if "TASK_STATE_" in text or "ROLE_" in text else ["enums of 0.3"]
    known = {("wrapped", "enums of 1.0"): "1.0", ("bare", "kind", "enums of 0.3"): "0.3"}
    return known.get(tuple(marks), f"a hybrid ({', '.join(marks)})")


def probe(base: str) -> str:
    status, text = fetch(f"{base}/.well-known/agent-card.json")
    try:
        card = json.loads(text)
    except ValueError:
        return f"no card: {status} {text[:80]}"
    url = endpoint(card)
    if not url:
        return f"card: {card_says(card)}"
    found = [f"card: {card_says(card)}"]
    for method, (message, headers) in ASKED.items():
        params = {"message": {"messageId": str(uuid4()), **message}}
        status, text = fetch(url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers)
        said = shape(text) if status else text
        found.append(f"{method}: {said}" if status in (0, 200) else f"{method}: HTTP {status}, {said}")
    return "; ".join(found)


def main() -> int:
    started = time.time()
    detail = probe(sys.argv[1])
    report.emit(Outcome("speaks", True, detail, started=started, ended=time.time()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
