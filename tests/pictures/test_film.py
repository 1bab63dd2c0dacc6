"""The README's moving picture: what its file says about itself, read by its format and not by what wrote it."""

import struct

from tests.pictures.film import OUT, SIZE, TIMES, animation


def pieces(data: bytes) -> list[tuple[bytes, bytes]]:
    """Name and content of each piece of a RIFF file."""
    assert data[:4] == b"RIFF" and data[8:12] == b"WEBP" and struct.unpack("<I", data[4:8])[0] == len(data) - 8
    found, at = [], 12
    while at < len(data):
        (size,) = struct.unpack("<I", data[at + 4 : at + 8])
        found.append((data[at : at + 4], data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    assert at == len(data)
    return found


def number(bits: bytes) -> int:
    return int.from_bytes(bits, "little")


def test_a_piece_lies_where_it_was_cut_out():
    picture = b"RIFF\x12\0\0\0WEBP" + b"ICCP\x02\0\0\0ab" + b"VP8 \x04\0\0\0abcd"
    *_, (name, frame) = pieces(animation([[6, 10, 20, 30, picture, 0.25]], width=40, height=50))
    assert name == b"ANMF" and frame[16:] == b"VP8 \x04\0\0\0abcd"
    assert [number(frame[at : at + 3]) for at in range(0, 15, 3)] == [3, 5, 19, 29, 250]


def test_the_readmes_picture_is_short_small_and_ends():
    (_, head), (_, how), *frames = pieces(OUT.read_bytes())
    assert (number(head[4:7]) + 1, number(head[7:10]) + 1) == (SIZE["width"], SIZE["height"])
    assert number(how[4:6]) == TIMES and OUT.stat().st_size < 1_500_000
    assert {name for name, _ in frames} == {b"ANMF"} and 20 < sum(number(each[12:15]) for _, each in frames) / 1000 < 40
