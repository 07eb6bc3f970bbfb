"""The LangGraph server with its A2A endpoint, in memory, over a graph that is a parrot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

from kit import hosting, parrot

GRAPH = Path(__file__).with_name("graph.py")
LIMIT = 60.0
SERVER = """
import sys
from langgraph_api.cli import run_server
run_server("127.0.0.1", int(sys.argv[1]), graphs={sys.argv[2]: sys.argv[3]}, open_browser=False)
"""
#: The id of the assistant that the server makes for each graph; the card is that of one assistant.
ASSISTANT = str(uuid.uuid5(uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), parrot.NAME))
SETTINGS = {"DEFAULT_A2A_ASSISTANT_ID": ASSISTANT, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}


def main() -> int:
    places = hosting.places()
    places.http.close()  # this server binds its port itself
    command = [sys.executable, "-c", SERVER, places.authority.rpartition(":")[2], parrot.NAME, f"{GRAPH}:graph"]
    with tempfile.TemporaryDirectory() as state:
        server = subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, **SETTINGS}, cwd=state)
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        if not answers(f"http://{places.authority}/ok"):
            server.kill()
            return 1
        hosting.ready(places)
        return server.wait()


def answers(url: str) -> bool:
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except OSError:
            time.sleep(0.2)
    return False


sys.exit(main())
