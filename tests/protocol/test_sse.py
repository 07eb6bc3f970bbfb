"""The event stream format: what is written, and that reading survives any cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import PeerError
from dragoman.protocol.sse import KEEP_ALIVE, Decoder, Event, frame, one_line


def read(stream: bytes, *cuts: int) -> tuple[list[Event], bool]:
    decoder, events, at = Decoder(), [], 0
    for cut in (*cuts, len(stream)):
        events += decoder.feed(stream[at:cut])
        at = max(at, cut)
    return events, decoder.end()


def test_an_event_is_one_line_of_data() -> None:
    assert frame(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert frame(b'{\n"a":1\r\n}') == b'data: { "a":1  }\n\n'
    assert frame(b"{}", b"error") == b"event: error\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: {\ndata:  1\ndata: }\n\n", [b"{\n 1\n}"]),
        (b": comment\n\ndata: a\n: more\ndata: b\n\n", [b"a\nb"]),
        (b"id: 7\nretry: 10\nevent: x\n\n", []),
        (b"data\n\n", [b""]),
        (b"data\ndata\n\n", [b"\n"]),
        (b"datum: a\nnonsense\n\n", []),
        (b"\n\n\n", []),
        (KEEP_ALIVE + b"data: \xc3\xbc\n\n", ["ü".encode()]),
        (b"data: a\xef\xbb\xbf\n\n", [b"a\xef\xbb\xbf"]),
    ],
)
def test_everything_that_the_format_allows_is_read(stream: bytes, events: list[bytes]) -> None:
    expected = ([Event(data) for data in events], True)
    assert read(stream) == expected
    for cut in range(len(stream) + 1):
        assert read(stream, cut) == expected
    assert read(stream, *range(len(stream))) == expected


def test_names_belong_to_their_event_and_ids_to_the_stream() -> None:
    decoder = Decoder()
    events = decoder.feed(b"event: error\nid: 4\nretry: 2500\ndata: a\n\ndata: b\n\nid: \0\nretry: x\n\n")
    assert events == [Event(b"a", "error"), Event(b"b", "")]
    assert (decoder.id, decoder.retry) == ("4", 2500)


def test_a_line_that_ended_with_cr_is_not_held_back() -> None:
    assert Decoder().feed(b"data: a\r\r") == [Event(b"a")]


@pytest.mark.parametrize(
    ("stream", "whole"),
    [
        (b"", True),
        (b"data: a\n\n", True),
        (b"data: a\n\n: half a comm", True),
        (b"data: a\n", False),
        (b"data: a", False),
        (b"event: x\n", False),
        (b"data: a\n\nda", False),
    ],
)
def test_the_end_tells_whether_an_event_was_cut(stream: bytes, whole: bool) -> None:
    assert read(stream)[1] is whole


@pytest.mark.parametrize("stream", [b"data: \xff\n\n", b"event: \xc3\ndata: x\n\n", b"data: \xc3\ndata: \xbc\n\n"])
def test_what_is_no_utf8_is_the_peers_fault(stream: bytes) -> None:
    with pytest.raises(PeerError, match="UTF-8"):
        Decoder().feed(stream)


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 11, b"data: xxxxxx\ndata: xxxxxx\n\n", b": " + b"x" * 40])
@pytest.mark.parametrize("step", [1, 5, 100])
def test_events_and_lines_are_limited_however_they_are_cut(stream: bytes, step: int) -> None:
    decoder = Decoder(10)
    with pytest.raises(PeerError, match="longer than 10 bytes"):
        for at in range(0, len(stream), step):
            decoder.feed(stream[at : at + step])
        decoder.feed(b"xxxxxxxx\n\n")
    with pytest.raises(PeerError):
        decoder.end()


def test_an_event_of_the_largest_size_is_read() -> None:
    assert Decoder(10).feed(b"data: 0123456789\n\n") == [Event(b"0123456789")]


def test_events_before_a_broken_one_are_given_first() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n\ndata: \xff\n\ndata: b\n\n") == [Event(b"a")]
    with pytest.raises(PeerError):
        decoder.feed(b"")


_PIECES = st.sampled_from(
    [
        b"data: a",
        b"data:",
        b"data: \xc3\xbc",
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b": c",
        b"event: e",
        b"\xef\xbb\xbf",
        b"id: 1",
        b"x",
    ]
)


@given(st.lists(_PIECES, max_size=20).map(b"".join), st.lists(st.integers(0, 80), max_size=8))
def test_any_cutting_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    try:
        whole = read(stream)
    except PeerError:
        with pytest.raises(PeerError):
            read(stream, *sorted(cuts))
    else:
        assert read(stream, *sorted(cuts)) == whole


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_reading_anything_raises_nothing_but_peer_errors(chunks: list[bytes]) -> None:
    decoder = Decoder(8)
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        decoder.end()
    except PeerError:
        pass


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_what_is_written_is_read(texts: list[str]) -> None:
    data = [text.encode() for text in texts]
    events, whole = read(b"".join(map(frame, data)))
    assert [event.data for event in events] == [one_line(one) for one in data]
    assert whole
