"""Standard input and output as bytes, read and written in a worker thread.

A pipe may block for as long as its other end likes; meanwhile heartbeats must be sent, and Ctrl-C
must work. So each wait can be abandoned, and the streams are used below Python's own buffers: a
thread that is left behind in one of those would hold its lock when the interpreter ends.
"""

import os
import stat
import sys
from functools import partial
from typing import Any, BinaryIO, Final

import trio

READ_BYTES: Final = 256 * 1024


def _unbuffered(stream: BinaryIO) -> Any:  # A RawIOBase, or a test's stream that has none below.
    return getattr(stream, "raw", stream)


async def read_piece(stream: BinaryIO) -> bytes:
    """What arrives on the stream next, `READ_BYTES` at most; nothing at its end."""
    read = partial(_unbuffered(stream).read, READ_BYTES)
    piece = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
    assert isinstance(piece, bytes)
    return piece


async def write_out(data: bytes) -> None:
    """Write to standard output, past every buffer; cancelled, part of it may have been written."""
    if data:
        await trio.to_thread.run_sync(_write_all, data, abandon_on_cancel=True)


async def wait_reader_gone() -> None:
    """Raises `BrokenPipeError` once nobody reads standard output any more, where it is a pipe: who
    has nothing to write would never hear of it."""
    out = sys.stdout.fileno()
    if stat.S_ISFIFO(os.fstat(out).st_mode):
        # Nothing can be read at this end; what ends the wait is epoll's word of an error.
        await trio.lowlevel.wait_readable(out)
        raise BrokenPipeError


def _write_all(data: bytes) -> None:
    stream = _unbuffered(sys.stdout.buffer)
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
