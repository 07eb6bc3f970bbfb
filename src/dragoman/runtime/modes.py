"""Which media types an agent takes (1.0 §3.1.1: a part of an unsupported type is refused).

Rules of this module:

- Only a media type that a part states is judged: most cards list fewer types than their agents understand, and a
  part that states none leaves its reader free.
- The types taken are the card's default input modes and those of its skills. ``text/*`` and ``*/*`` are understood,
  parameters and letter case ignored, ``text`` means ``text/*``. No modes at all means any.
- A text part goes wherever any text goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ContentTypeNotSupportedError
from ..model import AgentCard, Part


class InputModes:
    """The media types that a card takes."""

    def __init__(self, card: AgentCard) -> None:
        stated = [*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes)]
        self._modes = {_mode(mode) for mode in stated}
        self.any = not self._modes or "*/*" in self._modes
        self._text = any(mode.startswith("text/") for mode in self._modes)

    def check(self, parts: Iterable[Part]) -> None:
        """Raises ``ContentTypeNotSupportedError`` for the first part that the agent does not take."""
        if self.any:
            return
        for part in parts:
            if part.media_type and not self._takes(part):
                raise ContentTypeNotSupportedError(
                    f"This agent does not take {part.media_type}",
                    metadata={"mediaType": part.media_type, "supported": ", ".join(sorted(self._modes))},
                )

    def _takes(self, part: Part) -> bool:
        mode = _mode(part.media_type)
        if self._text and isinstance(part.text, str):
            return True
        return mode in self._modes or mode.partition("/")[0] + "/*" in self._modes


def _mode(text: str) -> str:
    mode = text.partition(";")[0].strip().lower()
    return mode if "/" in mode else f"{mode}/*"
