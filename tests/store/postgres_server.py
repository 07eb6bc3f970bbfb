"""A PostgreSQL of our own for tests: in a directory that goes away, on a socket that nobody else knows."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

OLDEST = 15


class Missing(Exception):
    """Raised when this machine cannot run one; its text says why."""


class PostgresServer:
    """A server that runs as soon as it is made."""

    def __init__(self) -> None:
        self._binaries = _binaries()
        self._user = _user()
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._numbers = count(1)
        if self._user is not None:
            os.chown(self._folder, pwd.getpwnam(self._user).pw_uid, -1)
        # A locale that orders texts otherwise than code points do: statements must not lean on it.
        self._run("initdb", "-A", "trust", "-U", "ada", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", *_ICU)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off"
        self._run("pg_ctl", "-w", "-s", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop it; its clients are thrown out."""
        self._run("pg_ctl", "-w", "-s", "-m", "immediate", "stop")

    def database(self) -> str:
        """The URL of what looks like a new, empty database: a schema of its own, which costs less."""
        name = f"schema{next(self._numbers)}"
        self._run("psql", "-X", "-q", "-h", str(self._folder), "-U", "ada", "-c", f"CREATE SCHEMA {name}", "postgres")
        return f"postgresql://ada@/postgres?host={self._folder}&search_path={name}"

    def remove(self) -> None:
        """Stop it for good."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder)

    def _run(self, program: str, *args: str) -> None:
        subprocess.run(
            [self._binaries / program, *args],
            user=self._user,
            cwd=self._folder,
            env={"PGDATA": str(self._folder / "data"), "PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )


_ICU = ("--locale-provider=icu", "--icu-locale=en-US")


def _binaries() -> Path:
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    new_enough = {version: folder for folder in found if (version := _version(folder)) >= OLDEST}
    if not new_enough:
        raise Missing(f"no PostgreSQL of version {OLDEST} or newer on this machine")
    return new_enough[max(new_enough)]


def _version(folder: Path) -> int:
    told = subprocess.run([folder / "initdb", "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"(\d+)", told)
    return int(match[1]) if match else 0


def _user() -> str | None:
    """Whom it runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise Missing("PostgreSQL does not run as root, and there is no other user for it")
