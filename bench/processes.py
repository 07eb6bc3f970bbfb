"""Processes under test: started, pinned, read for CPU time, ended; and the environment that the peer lives in.

Rules of this module:

- Whoever is measured runs on core 0, the load and any upstream on the last core, if there are two.
- CPU time is that of the process, its threads (ended ones too) and its children.
- A server says that it is ready with one line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
PEER_ENV = ROOT / ".interop" / "bench-a2a-sdk-1"
READY_SECONDS = 60.0

_CORES = sorted(os.sched_getaffinity(0))
#: Core of the process under test, and core of everybody else.
TESTED, OTHERS = _CORES[0], _CORES[-1]
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessError(Exception):
    """A process did not start, or ended before it was told to."""


class Process:
    """A child that talks in lines of JSON on its standard input and output."""

    def __init__(self, argv: Sequence[str], core: int) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._popen = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        self._name = " ".join(argv)
        os.sched_setaffinity(self._popen.pid, {core})

    def line(self, timeout: float) -> dict[str, Any]:
        """The next line that the process writes. Raises :class:`ProcessError` after ``timeout`` seconds."""
        out = self._popen.stdout
        assert out is not None
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            text = out.readline() if selector.select(timeout) else b""
        if not text:
            raise ProcessError(f"{self._name}: no answer; {self.errors() or 'nothing on standard error'}")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def tell(self, order: dict[str, Any]) -> None:
        """Write a line to the process."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(order).encode() + b"\n")

    def cpu(self) -> float:
        """Seconds of CPU that the process and its children used so far."""
        return sum(_cpu_ticks(pid) for pid in _family(self._popen.pid)) / _TICK

    def memory(self) -> int:
        """Bytes of memory that the process itself has at the moment."""
        return int(Path(f"/proc/{self._popen.pid}/statm").read_text().split()[1]) * _PAGE

    def errors(self) -> str:
        """The end of what the process wrote on standard error, in one line."""
        self._errors.seek(0)
        return " | ".join(self._errors.read().decode(errors="replace").strip().splitlines()[-3:])[-600:]

    def close(self) -> None:
        """End the process, kindly first."""
        self._popen.terminate()
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout, self._errors):
            if pipe is not None:
                pipe.close()


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _family(int(child))


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])  # utime and stime, fields 14 and 15 of proc(5)


class Server(Process):
    """A server that has said it is ready."""

    def __init__(self, argv: Sequence[str], core: int = TESTED) -> None:
        super().__init__(argv, core)
        try:
            self._ready = self.line(READY_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Where it is, without a trailing slash."""
        return str(self._ready["url"]).rstrip("/")

    def interface(self, binding: str, version: str) -> str:
        """URL of one of its interfaces."""
        for row in self._ready.get("interfaces", ()):
            if (row["protocolBinding"], row["protocolVersion"]) == (binding, version):
                return str(row["url"])
        raise ProcessError(f"no interface {version} {binding} at {self.url}")


@contextmanager
def server(*argv: str, core: int = TESTED) -> Iterator[Server]:
    """Run a server while the block runs."""
    running = Server(argv, core)
    try:
        yield running
    finally:
        running.close()


def dragoman(*arguments: str) -> tuple[str, ...]:
    """Command line of this project."""
    return (sys.executable, "-m", "dragoman", *arguments, "--port", "0", "--json")


def bare(*arguments: str) -> tuple[str, ...]:
    """Command line of the bare servers."""
    return (sys.executable, "-m", "bench.bare", *arguments)


def peer(script: str) -> tuple[str, ...]:
    """Command line of a script of the peer; makes its environment first if it is not there or out of date."""
    wanted = (PEERS / "requirements.txt").read_text()
    stamp = PEER_ENV / "bench-requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        _make_environment()
        stamp.write_text(wanted)
    return (str(PEER_ENV / "bin" / "python"), str(PEERS / script))


def _make_environment() -> None:
    print(f"making {PEER_ENV.relative_to(ROOT)} (a2a-sdk from PyPI)", file=sys.stderr, flush=True)
    python, wanted = str(PEER_ENV / "bin" / "python"), str(PEERS / "requirements.txt")
    local = ROOT / ".uv" / "bin" / "uv"
    uv = str(local) if local.exists() else shutil.which("uv")
    if uv:
        make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(PEER_ENV)]
        fill = [uv, "pip", "install", "--quiet", "--python", python, "-r", wanted]
    else:
        make = [sys.executable, "-m", "venv", "--clear", str(PEER_ENV)]
        fill = [python, "-m", "pip", "install", "--quiet", "-r", wanted]
    for argv in (make, fill):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProcessError(f"{' '.join(argv)}: {done.stderr.strip()[-600:]}")
