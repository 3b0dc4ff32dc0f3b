"""The bare loop, as a broker that syncs would have it: the disk has a thread of its own.

It receives, checks and writes as `bare_loop` does, but over the pages and blocks of a file that is
there, as a log does whose retention keeps up. With `--sync` its thread syncs what has come while it
synced what came before, and only then is that answered. Without a journal, offsets or epochs that
is the most that was found for `flush=commit` on a machine; and beside itself without `--sync`, what
the disk leaves of it.

How it cuts requests out of what comes is written out as it is there: shared, it would be a call
more for each small request of the bare loop, which takes seven microseconds for one.
"""

import os
import select
import socket
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from crc32c import crc32c

from benchmarks.bare_loop import ANSWER_LENGTH, CORRELATION, FRAME

_FILE_BYTES = 512 << 20
_PIECE = bytes(1_000_000)
_RECEIVED_BYTES = 2_200_000
"""Two requests of 1 MB, as the broker's buffer."""

Answers = list[bytes]


class Syncing:
    """The thread: what is handed over while it syncs is its next group."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._groups: SimpleQueue[Answers | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting: Answers = []
        self._is_busy = False
        self._synced: list[Answers] = []
        self.told = os.eventfd(0, os.EFD_NONBLOCK)
        self._thread = Thread(target=self._run)
        self._thread.start()

    def hand_over(self, answers: Answers) -> None:
        with self._lock:
            if self._is_busy:
                self._waiting += answers
                return
            self._is_busy = True
        self._groups.put(answers)

    def synced(self) -> bytes:
        """The answers to what has been synced since this was last called."""
        os.eventfd_read(self.told)
        found = []
        while self._synced:
            found += self._synced.pop(0)
        return b"".join(found)

    def stop(self) -> None:
        self._groups.put(None)
        self._thread.join()
        os.close(self.told)

    def _run(self) -> None:
        while (group := self._groups.get()) is not None:
            while group:
                os.fdatasync(self._descriptor)
                self._synced.append(group)
                os.eventfd_write(self.told, 1)
                with self._lock:
                    group, self._waiting = self._waiting, []
                    self._is_busy = bool(group)


class Pipeline:
    """One client's requests, one behind the other, over a file that is there."""

    def __init__(self, client: socket.socket, descriptor: int, answer: Callable[[Answers], None]):
        self._client = client
        self._descriptor = descriptor
        self._answer = answer
        self._buffer = memoryview(bytearray(_RECEIVED_BYTES))
        self._end = self._written = 0

    def receive(self) -> bool:
        """Whether the client is still there."""
        size = self._client.recv_into(self._buffer[self._end :])
        self._end += size
        start, answers = 0, []
        while self._end - start >= FRAME.size:
            following = start + FRAME.size + FRAME.unpack_from(self._buffer, start)[0]
            if following > self._end:
                break
            frame = self._buffer[start:following]
            crc32c(frame)
            self._write(frame)
            answers.append(ANSWER_LENGTH + bytes(frame[CORRELATION]))
            start = following
        if start:
            self._buffer[: self._end - start] = self._buffer[start : self._end]
            self._end -= start
        if answers:
            self._answer(answers)
        return size > 0

    def _write(self, frame: memoryview) -> None:
        if self._written + len(frame) > _FILE_BYTES:
            self._written = 0
        os.pwrite(self._descriptor, frame, self._written)
        self._written += len(frame)


def serve(listener: socket.socket, path: str, *, syncs: bool) -> None:
    """Serve one client after the other, for ever."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    for position in range(0, _FILE_BYTES, len(_PIECE)):
        os.pwrite(descriptor, _PIECE, position)
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        with client:
            (_serve_synced if syncs else _serve_cached)(client, descriptor)


def _serve_cached(client: socket.socket, descriptor: int) -> None:
    pipeline = Pipeline(client, descriptor, lambda answers: client.sendall(b"".join(answers)))
    while pipeline.receive():
        pass


def _serve_synced(client: socket.socket, descriptor: int) -> None:
    syncing = Syncing(descriptor)
    pipeline = Pipeline(client, descriptor, syncing.hand_over)
    try:
        with select.epoll() as ready:
            ready.register(client, select.EPOLLIN)
            ready.register(syncing.told, select.EPOLLIN)
            while True:
                for source, _ in ready.poll():
                    if source == syncing.told:
                        client.sendall(syncing.synced())
                    elif not pipeline.receive():
                        return
    finally:
        syncing.stop()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as bound:
        print(bound.getsockname()[1], flush=True)
        serve(bound, sys.argv[1], syncs="--sync" in sys.argv[2:])
