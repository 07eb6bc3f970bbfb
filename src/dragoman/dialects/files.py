"""How a 0.3 peer keeps the bytes of a file over gRPC and HTTP+JSON, and what shows it.

Rules of this module (pure):

- The field holds either the bytes, as the specification has it, or base64 text of them, as the official SDKs for
  Python, Java and Go write it. What could be either is never told apart by looks.
- A file is bytes beyond doubt if there is something in it that base64 text has not. It is base64 text beyond doubt if
  its media type begins in a way of its own (an image, a PDF, JSON) and the content does so only once it is decoded.
- A peer is learnt from that, but for content that is text: somebody may have put that where base64 belongs. Whoever
  was seen to do both is not known any more, and what each file shows is all that counts.
- What was configured holds, whatever is seen.
- What is not known is taken for what the peer on the other side does, if that has the same two forms: then nothing
  changes on the way. Else it is taken for bytes. Either is noted.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

Form: TypeAlias = Literal["bytes", "base64 text"]


class Reading(NamedTuple):
    """A form to go by. ``sure``: it is known, else it is assumed."""

    form: Form
    sure: bool


_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=_\-\r\n]")
_HEAD = 64  # characters that show how content begins
_ZIP = (b"PK\x03\x04",)
#: How content of a media type begins, of those that no base64 text can begin like.
_BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "image/svg+xml": (b"<",),
    "audio/wav": (b"RIFF",),
    "audio/ogg": (b"OggS",),
    "application/pdf": (b"%PDF-",),
    "application/gzip": (b"\x1f\x8b",),
    "application/zip": _ZIP,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": _ZIP,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": _ZIP,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": _ZIP,
    "application/json": (b"{", b"["),
    "application/xml": (b"<",),
    "text/xml": (b"<",),
}


def shown(content: bytes, media_type: str) -> Form | None:
    """The form that a file is in beyond doubt, None if it could be in either."""
    if _NOT_BASE64.search(content):
        return "bytes"
    begins = _BEGINNINGS.get(media_type.partition(";")[0].strip().lower())
    if begins and not content.startswith(begins) and (inner(content[:_HEAD]) or b"").startswith(begins):
        return "base64 text"
    return None


def inner(content: bytes) -> bytes | None:
    """What base64 text stands for, with either alphabet, with or without padding and line breaks; None if nothing."""
    text = content.translate(_STANDARD, b"\r\n=")
    try:
        return b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except NoBase64:
        return None


_STANDARD = bytes.maketrans(b"-_", b"+/")


class Files:
    """How one peer keeps files. ``form``: as configured, None to learn it. ``tell`` hears, in words, what was."""

    __slots__ = ("_disputed", "_tell", "configured", "form", "why")

    def __init__(self, form: Form | None = None, *, tell: Callable[[str], None] | None = None) -> None:
        self.form = form
        self.configured = form is not None
        self.why = "configured" if form else ""
        self._disputed = False
        self._tell = tell

    def of(self, content: bytes, media_type: str) -> Reading:
        """The form that a file of this peer is in."""
        if self.configured:
            return self.assumed()
        found = shown(content, media_type)
        if found is None:
            return self.assumed()
        if found == "base64 text" or not _is_text(content):
            self._learn(found, media_type)
        return Reading(found, True)

    def assumed(self) -> Reading:
        """The form to write to this peer, and to read what shows nothing."""
        return Reading(self.form or "bytes", self.form is not None)

    def _learn(self, found: Form, media_type: str) -> None:
        if self._disputed or found == self.form:
            return
        self._disputed = self.form is not None
        self.form = None if self._disputed else found
        self.why = "" if self._disputed else f"a file of type {media_type or 'unknown'} showed it"
        if self._tell is not None:
            does = "both base64 text and bytes" if self._disputed else found
            self._tell(f"{does} in the files of 0.3 gRPC and HTTP+JSON: a file of type {media_type!r} showed it")


class Between(Files):
    """Files of a peer ``own`` whose messages go to or come from ``other``, which has the same two forms."""

    __slots__ = ("_other", "_own")

    def __init__(self, own: Files, other: Files) -> None:
        self._own = own
        self._other = other
        self.form = own.form
        self.configured = own.configured

    def of(self, content: bytes, media_type: str) -> Reading:
        """As :meth:`Files.of`."""
        found = self._own.of(content, media_type)
        return found if found.sure else self.assumed()

    def assumed(self) -> Reading:
        """As :meth:`Files.assumed`."""
        found = self._own.assumed()
        return found if found.sure else Reading(self._other.assumed().form, False)


def configured(base64_text: bool | None, *, tell: Callable[[str], None] | None = None) -> Files:
    """Files of a peer that somebody knows, or that is to be learnt if it is None."""
    return Files(tell=tell) if base64_text is None else Files("base64 text" if base64_text else "bytes")


#: What the specification has.
BYTES = Files("bytes")
BASE64_TEXT = Files("base64 text")


def alike(one: Files, other: Files) -> bool:
    """Whether two peers are known to keep files in one form."""
    return one.form is not None and one.form == other.form


def taken(raw: Any, media_type: str, files: Files, unsure: Callable[[], None]) -> Any:
    """Content of a file as it came (bytes of protobuf, base64 text of JSON), as the model's decoder wants it."""
    if files.configured and files.form == "bytes":
        return raw
    content = _content(raw)
    if not content:
        return raw  # of which the decoder shall complain, if there is reason to
    form, sure = files.of(content, media_type)
    if not sure:
        unsure()
    found = inner(content) if form == "base64 text" and not _NOT_BASE64.search(content) else None
    return raw if found is None else b64encode(found).decode()


def given(raw: bytes, files: Files, unsure: Callable[[], None]) -> bytes:
    """Content of a file as the peer wants it."""
    if not raw:
        return raw
    form, sure = files.assumed()
    if not sure:
        unsure()
    return b64encode(raw) if form == "base64 text" else raw


def _content(raw: Any) -> bytes | None:
    """What is in the field."""
    if isinstance(raw, bytes):
        return raw
    return inner(raw.encode()) if isinstance(raw, str) and raw.isascii() else None


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
