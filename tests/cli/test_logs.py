"""Lines of the log, as text and as JSON."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest

from dragoman.cli.logs import JsonLines, Lines, TextLines, call_as_json, call_as_text, set_up
from dragoman.gateway.config import Observe
from dragoman.gateway.telemetry.calls import CallRecord

RECORD = CallRecord(
    time=1764561600.0456,
    upstream="alpha",
    operation="SendStreamingMessage",
    face_in="1.0/JSONRPC",
    face_out="0.3/GRPC",
    outcome="ok",
    ms=12.5,
    task="t-1",
    context="c\n1",
    caller="ops",
    losses=("tenant",),
    events=3,
    trace="ab" * 16,
)


@pytest.fixture
def loggers() -> Iterator[None]:
    """Puts logging back as it was."""
    root, ours = logging.getLogger(), logging.getLogger("dragoman")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    for name in ("dragoman.gateway.told", "dragoman.bodies"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_call_is_one_line_of_json() -> None:
    line = call_as_json(RECORD)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line) == {
        "time": "2025-12-01T04:00:00.045Z",
        "level": "info",
        "logger": "dragoman.calls",
        "upstream": "alpha",
        "operation": "SendStreamingMessage",
        "face_in": "1.0/JSONRPC",
        "face_out": "0.3/GRPC",
        "outcome": "ok",
        "ms": 12.5,
        "task": "t-1",
        "context": "c\n1",
        "caller": "ops",
        "losses": ["tenant"],
        "events": 3,
        "trace": "ab" * 16,
    }


def test_a_call_is_one_line_of_text_whatever_its_ids_hold() -> None:
    assert call_as_text(RECORD).decode() == (
        "2025-12-01T04:00:00.045Z CALL    alpha SendStreamingMessage 1.0/JSONRPC>0.3/GRPC ok 12.5ms events=3 "
        f"task=t-1 context=c\\n1 caller=ops trace={'ab' * 16} losses=tenant\n"
    )


@pytest.mark.usefixtures("loggers")
def test_a_record_is_one_line_and_its_traceback_stays_with_it() -> None:
    logs: tuple[Literal["json", "text"], ...] = ("json", "text")
    for log in logs:
        stream = io.StringIO()
        set_up(Observe(log=log), stream)
        try:
            raise ValueError("odd")
        except ValueError:
            logging.getLogger("dragoman.test").error("it\nbroke %s", "\x1b[31m", exc_info=True)
        written = stream.getvalue()
        if log == "json":
            assert written.count("\n") == 1
            told = json.loads(written)
            assert told["message"] == "it\nbroke \x1b[31m" and "ValueError: odd" in told["error"]
        else:
            assert "ERROR   dragoman.test: it\\nbroke \\x1b[31m\nTraceback" in written


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize(("level", "wanted"), [("warning", ["b"]), ("info", ["a", "b"]), ("error", [])])
def test_the_level_holds_for_us_and_others_count_from_warnings_on(
    level: Literal["warning", "info", "error"], wanted: list[str]
) -> None:
    stream = io.StringIO()
    set_up(Observe(log="json", level=level), stream)
    logging.getLogger("dragoman.x").info("a")
    logging.getLogger("dragoman.x").warning("b")
    logging.getLogger("other").info("c")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == wanted


@pytest.mark.usefixtures("loggers")
def test_what_the_gateway_decides_is_told_at_any_level() -> None:
    stream = io.StringIO()
    set_up(Observe(log="json", level="error"), stream)
    logging.getLogger("dragoman.gateway.told").info("the agent answers now")
    assert "the agent answers now" in stream.getvalue()


def test_colours_are_for_terminals() -> None:
    record = logging.LogRecord("x", logging.WARNING, __file__, 1, "odd", (), None)
    assert "\x1b[33m" in TextLines(colour=True).format(record)
    assert "\x1b" not in TextLines().format(record) + JsonLines().format(record)


async def test_lines_are_written_together_and_a_reader_who_is_gone_ends_nothing() -> None:
    class Gone(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    for stream in (io.BytesIO(), Gone()):
        lines = Lines(stream)
        lines.write(b"a\n")
        lines.write(b"b\n")
        assert stream.getvalue() == b""
        await asyncio.sleep(0)
        assert stream.getvalue() == b"a\nb\n"
