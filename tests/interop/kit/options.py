"""The options of a client of the bench."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Options:
    """`refused` says, by pattern of a step's name, which error may come of it here and is a pass too.

    `via` sends calls for one authority to another: that is how a recorder gets between client and server.
    """

    url: str
    version: str
    binding: str
    only: list[str]
    refused: Mapping[str, str]
    via: Mapping[str, str]
    base64_files: bool
    talk: bool

    def routed(self, url: str) -> str:
        authority = urlsplit(url).netloc if "://" in url else url
        return url.replace(authority, self.via.get(authority, authority), 1)


def options(arguments: Sequence[str] | None = None) -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="where the agent's card is, without the well-known path")
    parser.add_argument("--version", default="1.0", help="or any: what the client makes of the card")
    parser.add_argument("--binding", default="JSONRPC", help="or any")
    parser.add_argument("--step", action="append", default=[], help="name or pattern; all steps without it")
    parser.add_argument("--via", action="append", default=[], metavar="AUTHORITY=AUTHORITY")
    parser.add_argument("--refused", action="append", default=[], metavar="STEP=ERROR", help="the error is a pass too")
    parser.add_argument("--base64-files", action="store_true", help="the agent keeps base64 text in bytes (0.3)")
    parser.add_argument("--talk", action="store_true", help="the steps for an agent that knows no script")
    given = parser.parse_args(arguments)
    refused, via = (dict(pair.split("=", 1) for pair in pairs) for pairs in (given.refused, given.via))
    return Options(given.url, given.version, given.binding, given.step, refused, via, given.base64_files, given.talk)
