"""What a person sees and what a program reads: tables on a terminal, one JSON value per line with ``--json``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 200  # columns where no terminal says how many there are, so that nothing is folded in a file or a pipe


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDE
    return console


#: rich leaves colour out when the stream is no terminal or NO_COLOR is set.
stdout = _console(stderr=False)
stderr = _console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON value on one line of stdout, at once."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table on stdout, as wide as its content when stdout is no terminal."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    stdout.print(table)


def printable(text: str) -> str:
    """A text that an agent may have chosen: what steers a terminal is shown and does nothing."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


def say(text: str, style: str = "") -> None:
    """A line of progress or remark on stderr."""
    stderr.print(Text(printable(text), style=style))


def complain(text: str, hint: str = "") -> None:
    """An error on stderr, with what to do next."""
    stderr.print(Text("error: ", style="bold red") + Text(printable(text)))
    if hint:
        stderr.print(Text("  ") + Text(printable(hint), style="dim"))
