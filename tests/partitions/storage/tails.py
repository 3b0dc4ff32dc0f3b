"""What a loss of power leaves of bytes that were written and not synced, up to some byte."""

from random import Random


def cut(tail: bytes, at: int) -> bytes:
    return tail[:at]


def zeroed(tail: bytes, at: int) -> bytes:
    return tail[:at] + bytes(len(tail) - at)


def garbled(tail: bytes, at: int) -> bytes:
    return tail[:at] + Random(at).randbytes(len(tail) - at)
