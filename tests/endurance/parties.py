"""The processes of an endurance run: agents and the gateway, and what the system says of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

READY = 60.0
STOP = 15.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Party:
    """A process that says as its first line, in JSON, where it is; its log goes into a file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.exit_code: int | None = None
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, object]:
        """Run it until it is ready; what it said."""
        with self.log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE, stderr=errors
            )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), READY)
        if not line:
            raise RuntimeError(f"{self.name} did not start: {self.log.read_text()[-2000:]}")
        self._drain = asyncio.create_task(_read_on(self._process.stdout))
        said: dict[str, object] = json.loads(line)
        return said

    async def stop(self) -> None:
        """End it as an operator does."""
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.returncode is None:
            process.terminate()
        try:
            self.exit_code = await asyncio.wait_for(process.wait(), STOP)
        except TimeoutError:
            process.kill()
            self.exit_code = await process.wait()
        if self._drain is not None:
            self._drain.cancel()

    async def kill(self) -> None:
        """End it without a word to it."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        self._process = None

    def hang_up(self) -> None:
        """SIGHUP: read the configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    @property
    def memory(self) -> int:
        """Resident bytes."""
        assert self._process is not None
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE

    @property
    def files(self) -> int:
        """Open file descriptors, connections among them."""
        assert self._process is not None
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208

    def connections(self, *ports: int) -> int:
        """Connections that callers hold to these ports of it."""
        wanted = {f"{port:04X}" for port in ports}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(row[1].rpartition(":")[2] in wanted and row[3] == "01" for row in rows)

    @property
    def seconds(self) -> float:
        """CPU time used so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _read_on(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


_PORTS = iter(range(20_000 + os.getpid() % 500 * 20, 32_000))


def free_port() -> int:
    """One that no connection is given by the system, so that it stays free while its agent is away for a moment."""
    for port in _PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")


def agent(name: str, port: int, folder: Path) -> Party:
    """Our own agent on a port of its own."""
    command = [sys.executable, "-m", "dragoman", "serve", "tests/endurance/agent.py:agent"]
    return Party(name, [*command, "--port", str(port), "--json", "--allow-private-webhooks"], folder)


def gateway(config: Path, folder: Path) -> Party:
    return Party("gateway", [sys.executable, "-m", "dragoman", "gateway", "--config", str(config), "--json"], folder)
