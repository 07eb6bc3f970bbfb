"""Texts that callers and agents chose, as a column holds them.

Rules of this module (pure):

- No two texts are written the same, whatever is in them, so columns are compared for equality as texts would be.
- A text with U+0000, which PostgreSQL cannot hold, is written another way. So is one that is too long for an index, or
  no Unicode (a lone surrogate): that one as its digest, from which nobody gets it back.
- What is written another way has U+0001 in it. Who needs such a text itself takes it from the record beside it.
"""

from __future__ import annotations

from hashlib import sha256

#: Is in what is written another way than it is.
MARK = "\1"
#: UTF-8 bytes of a text that is written as it is: six columns of an index, each twice that long, fit into the third of
#: a page that PostgreSQL gives to an entry.
LONGEST = 200


def written(text: str) -> str:
    """The text for a column: at most 400 bytes of UTF-8."""
    if text.isascii() and len(text) <= LONGEST and "\0" not in text and MARK not in text:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > LONGEST or not _is_unicode(text):
        return f"{MARK}#{sha256(data).hexdigest()}"  # an escaped text never has "#" behind its first mark
    return text.replace(MARK, MARK * 2).replace("\0", f"{MARK}\2")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
