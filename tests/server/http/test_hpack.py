"""HPACK against RFC 7541's own examples and against the ``hpack`` package, in both directions."""

from __future__ import annotations

import random

import hpack
import pytest

from dragoman.server.http2.hpack import BlockTooLarge, Decoder, HpackError, encode
from tests.server.http.driver import Fields

ROOM = 65_536
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
NO_CACHE = [*GET, (b"cache-control", b"no-cache")]
CUSTOM = [
    (b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/index.html"), (b":authority", b"www.example.com"),
    (b"custom-key", b"custom-value"),
]  # fmt: skip


def moved(status: bytes, second: bytes) -> Fields:
    return [
        (b":status", status), (b"cache-control", b"private"), (b"date", b"Mon, 21 Oct 2013 20:13:" + second + b" GMT"),
        (b"location", b"https://www.example.com"),
    ]  # fmt: skip


COOKIE = b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
GZIPPED = [*moved(b"200", b"22"), (b"content-encoding", b"gzip"), (b"set-cookie", COOKIE)]
TABLE_OF_256 = "3fe101"  # the responses of C.5 and C.6 are for a small table
SERIES: dict[str, list[tuple[str, Fields]]] = {
    "C.2.1": [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [(b"custom-key", b"custom-header")]),
        ("be", [(b"custom-key", b"custom-header")]),
    ],
    "C.2.2": [("040c2f73616d706c652f70617468", [(b":path", b"/sample/path")])],
    "C.2.3": [("100870617373776f726406736563726574", [(b"password", b"secret")])],
    "C.2.4": [("82", [(b":method", b"GET")])],
    "C.3": [
        ("828684410f7777772e6578616d706c652e636f6d", GET),
        ("828684be58086e6f2d6361636865", NO_CACHE),
        ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", CUSTOM),
    ],
    "C.4": [
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", GET),
        ("828684be5886a8eb10649cbf", NO_CACHE),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", CUSTOM),
    ],
    "C.5": [
        (
            TABLE_OF_256 + "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54"
            "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            moved(b"302", b"21"),
        ),
        ("4803333037c1c0bf", moved(b"307", b"21")),
        (
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b4851"
            "4b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
            GZIPPED,
        ),
    ],
    "C.6": [
        (
            TABLE_OF_256 + "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f"
            "0b97c8e9ae82ae43d3",
            moved(b"302", b"21"),
        ),
        ("4883640effc1c0bf", moved(b"307", b"21")),
        (
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27"
            "087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            GZIPPED,
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES.keys())
def test_the_examples_of_the_rfc_decode(series: list[tuple[str, Fields]]) -> None:
    decoder = Decoder(ROOM)
    for block, fields in series:
        assert sorted(decoder.decode(bytes.fromhex(block))) == sorted(fields)


BROKEN = {
    "index 0": "80",
    "an index past the static table, the dynamic one being empty": "be",
    "an index far past the table": "ffffff03",
    "an integer without end": "ffffffffffffffffffff",
    "an integer cut off": "ff",
    "a name cut off": "400a6375",
    "a value cut off": "0f0d0a31",
    "no value": "0f0d",
    "a string longer than the block": "007f8001",
    "a table larger than offered": "3fe21f",
    "a table size after a field": "8220",
    "the end mark in a text": "00016184ffffffff",
    "padding of eight bits": "000161823fff",
    "padding that is not all ones": "00811800",
}


@pytest.mark.parametrize("block", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_block_is_refused(block: str) -> None:
    with pytest.raises(HpackError):
        Decoder(ROOM).decode(bytes.fromhex(block))


def test_a_table_size_of_zero_empties_the_table() -> None:
    decoder = Decoder(ROOM)
    decoder.decode(bytes.fromhex("4001610162"))
    assert decoder.decode(b"\xbe") == [(b"a", b"b")]
    with pytest.raises(HpackError):
        decoder.decode(b"\x20\xbe")


def test_a_field_larger_than_the_table_empties_it_and_is_still_told() -> None:
    decoder = Decoder(ROOM)
    decoder.decode(bytes.fromhex("4001610162"))
    large = b"x" * 5_000
    assert decoder.decode(hpack.Encoder().encode([(b"n", large)], huffman=False)) == [(b"n", large)]
    with pytest.raises(HpackError):
        decoder.decode(b"\xbe")


def test_the_generation_moves_only_with_the_table() -> None:
    decoder = Decoder(ROOM)
    before = decoder.generation
    decoder.decode(bytes.fromhex("82040c2f73616d706c652f70617468"))
    assert decoder.generation == before
    decoder.decode(bytes.fromhex("4001610162"))
    assert decoder.generation > before


def test_a_list_that_is_too_large_leaves_the_table_sound() -> None:
    decoder, encoder = Decoder(100), hpack.Encoder()
    block = encoder.encode([(b"first", b"1"), (b"large", b"x" * 90), (b"last", b"2")])
    with pytest.raises(BlockTooLarge) as caught:
        decoder.decode(block)
    assert caught.value.fields[0] == (b"first", b"1")
    assert decoder.decode(encoder.encode([(b"last", b"2")])) == [(b"last", b"2")]


def test_a_small_block_that_means_a_huge_list_is_given_up_early() -> None:
    decoder = Decoder(1_000)
    decoder.decode(hpack.Encoder().encode([(b"n", b"x" * 900)]))
    with pytest.raises(HpackError, match="far too large"):
        decoder.decode(b"\xbe" * 60_000)


def some_fields(chance: random.Random) -> Fields:
    """Fields of every sort: from the static table, repeated, empty, long, any octet."""
    names = [b":path", b"content-type", b"cookie", b"x-a", b"x-b", b"a" * chance.randrange(1, 200)]
    known = [b"", b"/", b"gzip, deflate", b"application/grpc", b"0"]
    return [
        (chance.choice(names), chance.choice([*known, chance.randbytes(chance.randrange(0, 300))]))
        for _ in range(chance.randrange(0, 12))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_what_hpack_writes_is_read(seed: int) -> None:
    chance, encoder, decoder = random.Random(seed), hpack.Encoder(), Decoder(1 << 20)
    for _ in range(150):
        if chance.random() < 0.1:
            encoder.header_table_size = chance.randrange(0, 4097)
        fields = some_fields(chance)
        marked = [(*field, chance.random() < 0.1) for field in fields]
        assert decoder.decode(encoder.encode(marked, huffman=chance.random() < 0.7)) == fields


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_by_hpack_and_by_us(seed: int) -> None:
    chance, theirs, ours = random.Random(seed), hpack.Decoder(1 << 20), Decoder(1 << 20)
    for _ in range(150):
        fields = some_fields(chance)
        block = encode(fields)
        assert [tuple(field) for field in theirs.decode(block, raw=True)] == fields == ours.decode(block)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_blocks_are_read_as_hpack_reads_them_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        block = bytearray(hpack.Encoder().encode(some_fields(chance), huffman=chance.random() < 0.7) or b"\x82")
        for _ in range(chance.randrange(1, 4)):
            block[chance.randrange(len(block))] = chance.randrange(256)
        try:
            ours = Decoder(1 << 20).decode(bytes(block))
        except HpackError:
            continue
        theirs = hpack.Decoder(1 << 20)
        theirs.max_allowed_table_size = 4096
        assert [tuple(field) for field in theirs.decode(bytes(block), raw=True)] == ours


@pytest.mark.parametrize("seed", range(4))
def test_noise_never_raises_anything_else(seed: int) -> None:
    chance, refused = random.Random(seed), 0
    decoder = Decoder(ROOM)
    for _ in range(500):
        try:
            decoder.decode(chance.randbytes(chance.randrange(1, 60)))
        except HpackError:
            refused += 1
            decoder = Decoder(ROOM)
    assert refused
