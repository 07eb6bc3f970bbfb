"""HPACK (RFC 7541): header blocks of HTTP/2 to and from lists of ``(name, value)`` byte pairs.

Pure: no sockets, no event loop. The decoder keeps the dynamic table that the peer drives and counts its
changes: while ``generation`` stands still, the same bytes mean the same fields, so a caller may remember
whole blocks. The encoder keeps no table: every field goes as a literal or by static index, so a block depends
on nothing that was sent before it.
"""

from __future__ import annotations

from collections import deque

__all__ = ["BlockTooLarge", "Decoder", "HpackError", "encode"]

Fields = list[tuple[bytes, bytes]]

#: Appendix A, as ``name`` or ``name=value``.
_STATIC_TEXT = (
    ":authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|:status=204|"
    ":status=206|:status=304|:status=400|:status=404|:status=500|accept-charset|accept-encoding=gzip, deflate|"
    "accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|"
    "content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|"
    "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|"
    "last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|"
    "server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
)
_STATIC: list[tuple[bytes, bytes]] = [
    (name.encode(), value.encode()) for name, _, value in (row.partition("=") for row in _STATIC_TEXT.split("|"))
]
_STATIC_FIELD = {field: index for index, field in reversed(list(enumerate(_STATIC, 1)))}
_STATIC_NAME = {field[0]: index for index, field in reversed(list(enumerate(_STATIC, 1)))}

#: Appendix B: the code is canonical, so the lengths of the 256 octets and the end mark say all of it.
_HUFFMAN_BITS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b080606060505"
    "050606060606060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e060f050605"
    "06050606060507070606060506070605050607070707070f0b0e0d1c14161414161616171617171717171817181816171817"
    "1717171516171617171816151416161717151716161815161717151516151716171714161616171616171a1a141316171619"
    "1a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c"
    "1b1b1b1b1b1a1e"
)
TABLE_SIZE = 4096  # of the dynamic table that we offer: the default, which no setting has to say
_OVERHEAD = 32  # section 4.1: what a field costs beyond its octets


class HpackError(Exception):
    """The block cannot be decoded; the connection's table is lost with it."""


class BlockTooLarge(HpackError):
    """The block was decoded and the table is sound, but the list is larger than allowed. Keeps the first fields."""

    def __init__(self, fields: Fields) -> None:
        super().__init__("header list too large")
        self.fields = fields


def _huffman_codes() -> dict[int, int]:
    """``code -> octet``, each code with a leading 1 so that its zeros count; counted up by length."""
    codes, code, length = {}, 0, 0
    for octet in sorted(range(257), key=lambda o: (_HUFFMAN_BITS[o], o)):
        code <<= _HUFFMAN_BITS[octet] - length
        length = _HUFFMAN_BITS[octet]
        codes[1 << length | code] = octet
        code += 1
    return codes


_CODES = _huffman_codes()
_STEPS: dict[int, tuple[int, bytes]] = {}  # (bits left, octet) -> (bits left, text)


def _step(bits: int, octet: int) -> tuple[int, bytes]:
    out = bytearray()
    for shift in range(7, -1, -1):
        now = bits << 1 | (octet >> shift) & 1
        found = _CODES.get(now)
        if found == 256 or now >> 31:
            raise HpackError("no such code")
        if found is None:
            bits = now
        else:
            out.append(found)
            bits = 1
    return bits, bytes(out)


def _huffman(data: bytes) -> bytes:
    out, bits = [], 1
    for octet in data:
        key = bits << 8 | octet
        step = _STEPS.get(key)
        if step is None:
            step = _STEPS[key] = _step(bits, octet)
        bits, text = step
        out.append(text)
    if bits >> 8 or bits & (bits + 1):  # what is left must be fewer than eight ones
        raise HpackError("bad padding")
    return b"".join(out)


def _integer(block: bytes, at: int, prefix: int) -> tuple[int, int]:
    """Section 5.1; returns the value and the place after it."""
    mask = (1 << prefix) - 1
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    shift = 0
    while True:
        octet = block[at]
        at += 1
        value += (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            return value, at
        if shift > 28:
            raise HpackError("integer too long")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    huffman = block[at] & 0x80
    size, at = _integer(block, at, 7)
    end = at + size
    if end > len(block):
        raise HpackError("string runs past the block")
    raw = block[at:end]
    if not huffman:
        return raw, end
    return _huffman(raw), end


class Decoder:
    """One direction of one connection. ``generation`` moves on whenever the dynamic table does."""

    __slots__ = ("_limit", "_max_list", "_size", "_table", "generation")

    def __init__(self, max_list: int) -> None:
        self._table: deque[tuple[bytes, bytes]] = deque()
        self._size = 0
        self._limit = TABLE_SIZE
        self._max_list = max_list
        self.generation = 0

    def decode(self, block: bytes) -> Fields:
        """The fields of one whole block, in order."""
        try:
            return self._decode(block)
        except IndexError:
            raise HpackError("block ends early") from None

    def _decode(self, block: bytes) -> Fields:
        fields: Fields = []
        table = self._table
        at, end, room = 0, len(block), self._max_list
        while at < end:
            first = block[at]
            if first >= 0x80:  # indexed
                index, at = (first & 0x7F, at + 1) if first != 0xFF else _integer(block, at, 7)
                field = self._field(index)
            elif first & 0xE0 == 0x20:  # table size update
                size, at = _integer(block, at, 5)
                if fields or size > TABLE_SIZE:
                    raise HpackError("bad table size update")
                self._limit = size
                self.generation += 1
                self._evict()
                continue
            else:  # literal; 0x40 says: add it to the table
                index, at = _integer(block, at, 6 if first & 0x40 else 4)
                if index:
                    name = self._field(index)[0]
                else:
                    name, at = _string(block, at)
                value, at = _string(block, at)
                field = (name, value)
                if first & 0x40:
                    table.appendleft(field)
                    self._size += len(name) + len(value) + _OVERHEAD
                    self._evict()
                    self.generation += 1
            room -= len(field[0]) + len(field[1]) + _OVERHEAD
            if room >= 0:
                fields.append(field)
            elif room < -15 * self._max_list:
                raise HpackError("header list far too large")
        if room < 0:
            raise BlockTooLarge(fields)
        return fields

    def _field(self, index: int) -> tuple[bytes, bytes]:
        if index <= 61:
            if not index:
                raise HpackError("index 0")
            return _STATIC[index - 1]
        if index - 62 >= len(self._table):
            raise HpackError("index past the table")
        return self._table[index - 62]

    def _evict(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + _OVERHEAD


def _write_integer(value: int, prefix: int, flags: int) -> bytes:
    mask = (1 << prefix) - 1
    if value < mask:
        return bytes((flags | value,))
    out = bytearray((flags | mask,))
    value -= mask
    while value >= 0x80:
        out.append(0x80 | (value & 0x7F))
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(fields: Fields) -> bytes:
    """One block for ``fields``, names already in lower case."""
    out = []
    for field in fields:
        index = _STATIC_FIELD.get(field)
        if index is not None and field[1]:
            out.append(bytes((0x80 | index,)))
            continue
        name, value = field
        index = _STATIC_NAME.get(name, 0)
        out.append(_write_integer(index, 4, 0))
        if not index:
            out += (_write_integer(len(name), 7, 0), name)
        out += (_write_integer(len(value), 7, 0), value)
    return b"".join(out)
