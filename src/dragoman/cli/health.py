"""``dragoman gateway health``: ask a gateway how it is, for whoever has no curl at hand, such as a container."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from ..errors import ConfigError, TransportError
from .output import complain


def health(url: str = "http://127.0.0.1:8000", *, ready: bool = False, timeout: float = 3.0) -> int:
    """Ask a gateway whether it is alive: exit code 0 if it is, 1 if it says no, 3 if it cannot be reached.

    Example: `dragoman gateway health http://127.0.0.1:9100 --ready`

    Parameters
    ----------
    url
        Where the gateway listens, or where it has its port for health and metrics.
    ready
        Ask whether it is ready to serve, too.
    timeout
        Seconds to wait for the answer.
    """
    from .main import FINDINGS, OK

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no URL: write http://HOST:PORT")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request("GET", "/readyz" if ready else "/healthz")
        answer = connection.getresponse()
        said = answer.read(10_000).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        raise TransportError(f"The gateway at {url} gives no answer: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if answer.status == 200:
        return OK
    complain(f"{answer.status} {said}")
    return FINDINGS
