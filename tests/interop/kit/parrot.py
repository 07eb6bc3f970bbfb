"""What the model behind every framework's agent says: no network, and always the same."""

from __future__ import annotations

NAME = "parrot"
DESCRIPTION = "Says back what it is told."


def reply(text: str) -> str:
    return f"You said: {text}"


def words(text: str) -> list[str]:
    """The reply as a model would stream it."""
    return [f"{word} " for word in reply(text).split(" ")[:-1]] + reply(text).split(" ")[-1:]
