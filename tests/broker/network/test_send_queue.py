import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.broker.network.send_queue import TURN_BYTES_MAX, CopyingSendQueue, SendQueue


class Slice:
    """A range of a file, and whether it was released."""

    def __init__(self, path: Path, position: int, length: int) -> None:
        self._file = path.open("rb")
        self.position = position
        self._length = length
        self.is_released = self.is_lent = False

    def __len__(self) -> int:
        return self._length

    def fileno(self) -> int:
        return self._file.fileno()

    def lend(self) -> int:
        self.is_lent = True
        return self._file.fileno()

    def release(self) -> None:
        self.is_released = True
        self._file.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    server.setblocking(False)
    with client, server:
        yield client, server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(os.urandom(3_000_000))
    return path


def receive(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part
        data += part
    return data


def send_all(queue: SendQueue, server: socket.socket, client: socket.socket, size: int) -> bytes:
    """Send as the reactor does, when the socket can take more, and read meanwhile."""
    client.setblocking(False)
    got, is_done = b"", False
    while len(got) < size:
        readable, writable, _ = select.select([client], [] if is_done else [server], [], 5)
        assert readable or writable, "nothing moves any more"
        if writable:
            is_done = queue.send(server)
        if readable:
            got += client.recv(1_000_000)
    assert queue.send(server)
    return got


@pytest.mark.parametrize("kind", [SendQueue, CopyingSendQueue])
def test_bytes_and_slices_go_out_in_order(
    pair: tuple[socket.socket, socket.socket], log: Path, kind: type[SendQueue]
) -> None:
    client, server = pair
    queue, content = kind(), log.read_bytes()
    first, second = Slice(log, 10, 1_000), Slice(log, 2_000, 500)
    queue.add([b"head", first, b"middle"])
    queue.add([second, b"end"])
    assert queue.size_bytes == 4 + 1_000 + 6 + 500 + 3
    assert queue.memory_bytes == 13
    assert queue.send(server)
    expected = b"head" + content[10:1_010] + b"middle" + content[2_000:2_500] + b"end"
    assert receive(client, len(expected)) == expected
    assert first.is_released
    assert second.is_released
    assert queue.size_bytes == queue.memory_bytes == 0
    assert first.is_lent is (kind is SendQueue)


@pytest.mark.parametrize("kind", [SendQueue, CopyingSendQueue])
def test_what_the_socket_does_not_take_is_sent_later(
    pair: tuple[socket.socket, socket.socket], log: Path, kind: type[SendQueue]
) -> None:
    client, server = pair
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
    queue, content = kind(), log.read_bytes()
    parts = [bytes([n]) * 70_000 for n in range(5)]
    queue.add([parts[0], Slice(log, 0, 3_000_000), *parts[1:]])
    expected = parts[0] + content + b"".join(parts[1:])
    assert send_all(queue, server, client, len(expected)) == expected


def test_a_gathered_send_may_end_within_any_part(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    queue = SendQueue()
    parts = [bytes([n % 251]) * (n * 37) for n in range(1, 300)]
    queue.add(parts)
    expected = b"".join(parts)
    assert send_all(queue, server, client, len(expected)) == expected


def test_a_fast_reader_does_not_keep_the_others_from_their_turn(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    _, server = pair
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024 * 1024)
    queue = SendQueue()
    queue.add([bytes(100_000)] * 200)
    queue.send(server)
    assert queue.size_bytes >= 200 * 100_000 - TURN_BYTES_MAX - 64 * 100_000


def test_an_empty_slice_is_released_and_not_sent(
    pair: tuple[socket.socket, socket.socket], log: Path
) -> None:
    client, server = pair
    queue, empty = SendQueue(), Slice(log, 0, 0)
    queue.add([b"only", empty])
    assert queue.send(server)
    assert receive(client, 4) == b"only"
    assert empty.is_released


def test_a_queue_that_is_released_releases_its_slices(log: Path) -> None:
    queue, part = SendQueue(), Slice(log, 0, 10)
    queue.add([b"head", part])
    queue.release()
    assert part.is_released
    assert not queue


def test_a_file_shorter_than_its_slice_breaks_the_connection_and_does_not_hang(
    pair: tuple[socket.socket, socket.socket], log: Path
) -> None:
    _, server = pair
    queue = SendQueue()
    queue.add([Slice(log, 3_000_000, 10)])
    with pytest.raises(OSError, match="ended before"):
        queue.send(server)
    queue.release()
