"""Every metric of the gateway, as one table: what is counted, what it is called, and by what it is told apart.

Rules of this module:

- No label has values that callers choose: no ids, no names of callers. Operations, faces, errors and losses are tables
  themselves, upstreams and replicas are the operator's.
- Names follow the conventions of Prometheus: the unit is in the name, what only grows ends in ``_total``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]

#: Upper bounds of the buckets, in seconds and in events.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
EVENTS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0)


class Metric(NamedTuple):
    """One metric: its name, what it is, its labels, and what it says."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str


_CALL = ("upstream", "operation", "face_in", "face_out")
_REPLICA = ("upstream", "replica")

_ROWS = (
    Metric("dragoman_calls_total", "counter", (*_CALL, "outcome"), "Calls that are over, streams included"),
    Metric("dragoman_call_seconds", "histogram", _CALL, "How long calls took, streams until their end"),
    Metric("dragoman_stream_events", "histogram", _CALL, "Events that streams had when they ended"),
    Metric("dragoman_calls_in_flight", "gauge", ("upstream",), "Calls at work"),
    Metric("dragoman_streams_open", "gauge", ("upstream",), "Streams that are open"),
    Metric("dragoman_turned_away_total", "counter", ("upstream", "why"), "Requests refused before they became a call"),
    Metric(
        "dragoman_losses_total", "counter", ("upstream", "loss", "side"), "What translations met that has no equivalent"
    ),
    Metric("dragoman_upstream_up", "gauge", ("upstream",), "1 if calls go through to the agent, else 0"),
    Metric("dragoman_upstream_waiting", "gauge", ("upstream",), "Calls and streams that wait for their turn"),
    Metric("dragoman_replica_up", "gauge", _REPLICA, "1 if calls go to this replica, else 0"),
    Metric("dragoman_replica_busy", "gauge", _REPLICA, "Calls and streams that it has"),
    Metric("dragoman_replica_connects_total", "counter", _REPLICA, "Times that it was connected to, by its card"),
    Metric("dragoman_replica_failures_total", "counter", _REPLICA, "Calls, streams and looks at its card that failed"),
    Metric("dragoman_replica_left_alone_total", "counter", _REPLICA, "Times that its breaker opened"),
    Metric("dragoman_webhooks", "gauge", (), "Webhooks that are to be served; of all gateways on one store"),
    Metric("dragoman_deliveries_pending", "gauge", (), "Deliveries that wait; of all gateways on one store"),
    Metric("dragoman_deliveries_dead", "gauge", (), "Deliveries that were given up and are kept; likewise"),
    Metric("dragoman_deliveries_total", "counter", ("outcome",), "What became of deliveries and of their attempts"),
    Metric("dragoman_notifications_total", "counter", ("outcome",), "What became of notifications that agents sent"),
    Metric("dragoman_draining", "gauge", (), "1 once the gateway was told to stop"),
    Metric("dragoman_build_info", "gauge", ("version",), "Always 1; says which version this is"),
)

#: Every metric by its name.
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}


_BEGIN = "<!-- metrics: made by `make docs` from dragoman.gateway.telemetry.catalog -->\n"
_END = "<!-- end of metrics -->\n"


def on_page(page: str) -> str:
    """The page for operators, with the table as it is now."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return f"{before}{begin}{as_markdown()}{end}{after}"


def as_markdown() -> str:
    """The table, as the page for operators has it."""
    rows = (f"| `{one.name}` | {one.kind} | {', '.join(one.labels)} | {one.text} |\n" for one in _ROWS)
    return "| metric | kind | labels | |\n|---|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    for _page in map(Path, sys.argv[1:]):
        _page.write_text(on_page(_page.read_text()))
