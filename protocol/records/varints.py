"""The variable-length integers inside records: zig-zag form, seven bits a byte, lowest first."""

from typing import Final

_BITS_MAX: Final = 64


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The integer at `at`, and where the next field begins.

    Raises `IndexError` where the bytes end, `ValueError` if it goes on past ten bytes.
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    result = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        if byte < 0x80:
            break
        result |= (byte & 0x7F) << shift
        shift += 7
        if shift >= _BITS_MAX:
            raise ValueError("a varint of more than ten bytes")
    result |= byte << shift
    return (result >> 1) ^ -(result & 1), at + 1


def varint(value: int) -> bytes:
    """`value`, which fits in 64 bits, in as few bytes as it takes."""
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag < 0x80:
        return _ONE_BYTE[zigzag]
    if zigzag < 0x4000:
        return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))
