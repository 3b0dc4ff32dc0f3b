"""The bare loop: what a broker in Python could do at most if it were not a broker.

It receives the same frames from the same client with `recv_into`, checks their CRC32C and appends
them to a file, and answers each with four bytes' worth of nothing. No protocol, no offsets, no
other clients. A produce benchmark of the broker is held to this one, measured in the same run. With
`--sync` it answers what the disk has: that is what `flush=commit` is held to.
"""

import os
import socket
import struct
import sys

from crc32c import crc32c

FRAME = struct.Struct(">i")
CORRELATION = slice(8, 12)
ANSWER_LENGTH = FRAME.pack(4)


def serve(listener: socket.socket, path: str, *, syncs: bool) -> None:
    """Serve one client after the other, for ever; each begins the file anew."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    buffer = memoryview(bytearray(4 << 20))
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        os.ftruncate(descriptor, 0)
        with client:
            _serve_one(client, buffer, descriptor, syncs=syncs)


def _serve_one(client: socket.socket, buffer: memoryview, descriptor: int, *, syncs: bool) -> None:
    end = written = 0
    while size := client.recv_into(buffer[end:]):
        end += size
        start, answers = 0, []
        while end - start >= FRAME.size:
            following = start + FRAME.size + FRAME.unpack_from(buffer, start)[0]
            if following > end:
                break
            frame = buffer[start:following]
            crc32c(frame)
            os.pwrite(descriptor, frame, written)
            written += len(frame)
            answers.append(ANSWER_LENGTH + bytes(frame[CORRELATION]))
            start = following
        buffer[: end - start] = buffer[start:end]
        end -= start
        if answers:
            if syncs:
                os.fdatasync(descriptor)
            client.sendall(b"".join(answers))


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as bound:
        print(bound.getsockname()[1], flush=True)
        serve(bound, sys.argv[1], syncs="--sync" in sys.argv[2:])
