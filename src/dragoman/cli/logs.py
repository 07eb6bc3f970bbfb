"""What a server writes to standard error: records as lines of text for people, or of JSON for programs.

Rules of this module:

- A line of text is one record, whatever a peer wrote into it; only a traceback has more.
- Records of calls are written together, once per turn of the event loop: they cost a call little, and a crash at most
  those of its last turn.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from ..gateway.config import Observe
from ..gateway.telemetry.calls import CallLog, CallRecord
from .output import say, stderr

_COLOURS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
_PLAIN = "\x1b[0m"
#: Logged whatever the level is: what was asked for by name, and what the gateway decides.
_ALWAYS = ("dragoman.gateway.told", "dragoman.bodies")
_told = logging.getLogger(_ALWAYS[0])


def set_up(observe: Observe, stream: IO[str] | None = None) -> None:
    """Send what is logged to ``stream``, default standard error. Others' records count from warnings on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if observe.log == "json" else TextLines(colour=stderr.is_terminal))
    level = logging.getLevelNamesMapping()[observe.level.upper()]
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    logging.getLogger("dragoman").setLevel(level)
    for name in _ALWAYS:
        logging.getLogger(name).setLevel(min(level, logging.INFO))
    if observe.bodies:
        logging.getLogger("dragoman.bodies").warning(
            "MESSAGES ARE LOGGED: what people write to agents, and what agents answer, stands in this log, redacted by "
            "the names of keys alone. For debugging only"
        )


def teller(observe: Observe) -> Callable[[str], None]:
    """Who tells the operator what was decided, in words."""
    if observe.log == "json":
        return _told.info
    return lambda text: say(f"note: {text}", style="yellow")


def call_log(observe: Observe, stream: IO[bytes] | None = None) -> CallLog:
    """Where records of calls go."""
    lines = Lines(stream or sys.stderr.buffer)
    write, line = lines.write, call_as_json if observe.log == "json" else call_as_text
    return lambda record: write(line(record))


class Lines:
    """Lines of a stream, written together once per turn of the event loop."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._waiting: list[bytes] = []

    def write(self, line: bytes) -> None:
        """Write ``line``, which ends in a newline, soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(line)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            self._stream.write(b"".join(waiting))
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it, or it is closed: that must not end the gateway


class TextLines(logging.Formatter):
    """Time, level, who says it, and what."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname:<7}"
        if self._colour and record.levelname in _COLOURS:
            level = f"{_COLOURS[record.levelname]}{level}{_PLAIN}"
        text = f"{_stamp(record.created)} {level} {record.name}: {_one_line(record.getMessage())}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": _stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told).decode()


def call_as_json(record: CallRecord) -> bytes:
    """A record as a line of JSON: its fields, after the three that every line has."""
    fields = _encode(record).partition(b",")[2]  # the first is the time, which has to be readable
    return b'{"time":"%b","level":"info","logger":"dragoman.calls",%b\n' % (_stamp(record.time).encode(), fields)


def call_as_text(record: CallRecord) -> bytes:
    """A record as a line of text."""
    out = record.face_out
    more = "".join([f" {name}={_one_line(str(value))}" for name in _MORE if (value := getattr(record, name))])
    losses = f" losses={','.join(record.losses)}" if record.losses else ""
    events = "" if record.events is None else f" events={record.events}"
    return (
        f"{_stamp(record.time)} CALL    {record.upstream} {record.operation} {record.face_in}>{out} "
        f"{record.outcome} {record.ms}ms{events}{more}{losses}\n"
    ).encode()


_MORE = ("task", "context", "caller", "trace")
_encode = msgspec.json.Encoder().encode


class _Stamps:
    """Times in UTC as RFC 3339 has them; most fall into the second of the one before."""

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""

    def __call__(self, seconds: float) -> str:
        second = int(seconds)
        if second != self._second:
            self._second, self._prefix = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._prefix}.{int((seconds - second) * 1000):03}Z"


_stamp = _Stamps()


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
