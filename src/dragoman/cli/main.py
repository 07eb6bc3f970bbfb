"""The ``dragoman`` command: which commands there are, and what an error becomes.

Exit codes: 0 ok; 1 findings or failures; 2 usage; 3 unreachable; 4 authentication needed or refused; 5 the peer broke
the protocol; 70 our own fault; 130 interrupted. Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from ..errors import (
    A2AError,
    ConfigError,
    DragomanError,
    PeerError,
    PermissionDeniedError,
    TransportError,
    UnauthenticatedError,
)
from .output import complain

OK, FINDINGS, USAGE, UNREACHABLE, AUTHENTICATION, PROTOCOL, OUR_FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 70, 130

#: First match decides, so a subclass stands before its base.
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (ConfigError, USAGE),
    (TransportError, UNREACHABLE),
    (UnauthenticatedError, AUTHENTICATION),
    (PermissionDeniedError, AUTHENTICATION),
    (PeerError, PROTOCOL),
    (A2AError, FINDINGS),
    (DragomanError, FINDINGS),
)

app = App(
    name="dragoman",
    help="""A2A between any two agents, whichever version (0.3, 1.0) and binding (JSON-RPC, gRPC, HTTP+JSON) they speak.

    Start with `dragoman gateway URL`: it stands in front of the agent at URL and prints the addresses under which any
    A2A client can reach it.""",
    version=lambda: version("dragoman"),
)
app.command("dragoman.cli.gateway:app", name="gateway")  # has commands of its own
for _name in ("serve", "call", "card", "convert"):
    app.command(f"dragoman.cli.{_name}:{_name}", name=_name, version_flags=())


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        return result if isinstance(result, int) else OK
    except CycloptsError as error:
        complain(str(error), hint="Try: dragoman --help")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except DragomanError as error:
        complain("; ".join((str(error), *getattr(error, "__notes__", ()))), hint=getattr(error, "hint", ""))
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    except ImportError as error:
        return _missing(error)
    except BrokenPipeError:
        return OK  # the reader has seen enough
    except Exception:  # the last resort: ours to mend, so show all of it
        traceback.print_exc()
        complain("This is a fault of dragoman itself; the lines above say where")
        return OUR_FAULT


def _missing(error: ImportError) -> int:
    """A part of ours is never missing, so what cannot be imported belongs to an extra."""
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    if (cause.name or "").startswith("dragoman"):
        raise error
    complain(f"{cause.name or cause} is not installed", hint="Try: pip install 'dragoman[all]'")
    return USAGE


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))
