import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.broker.network.receive_buffer import (
    FIRST_BYTES,
    GATHERED_BYTES,
    STREAMING_BYTES,
    MemoryBudget,
    ReceiveBuffer,
)
from tidemark.protocol.errors import FrameTooLarge

MIB = 1024 * 1024


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    client, server = socket.socketpair()
    server.setblocking(False)
    with client, server:
        yield client, server


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def drain(buffer: ReceiveBuffer, server: socket.socket) -> list[bytes]:
    """Receive until nothing is there, and copy every frame."""
    frames = list[bytes]()
    while True:
        try:
            received = buffer.receive(server)
        except BlockingIOError:
            return frames
        assert received
        # Any number at once gives the same.
        while cut := buffer.next_frames(1 + len(frames) % 3):
            if len(cut) == 3:
                buffer.put_back(cut[1:])
                cut = cut[:1]
            frames += map(bytes, cut)


def make(budget_bytes: int = 64 * MIB, frame_bytes_max: int = 16 * MIB) -> ReceiveBuffer:
    return ReceiveBuffer(frame_bytes_max=frame_bytes_max, budget=MemoryBudget(budget_bytes))


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 40) | st.integers(10_000, 40_000), max_size=9),
    cuts=st.lists(st.integers(1, 30_000), max_size=30),
)
def test_any_split_of_the_stream_gives_the_same_frames(sizes: list[int], cuts: list[int]) -> None:
    frames = [bytes([n + 1]) * size for n, size in enumerate(sizes)]
    client, server = socket.socketpair()
    server.setblocking(False)
    stream, buffer, got = b"".join(map(framed, frames)), make(), list[bytes]()
    with client, server:
        for cut in cuts:
            client.sendall(stream[:cut])
            got += drain(buffer, server)
            stream = stream[cut:]
        while stream:
            client.sendall(stream[:50_000])
            got += drain(buffer, server)
            stream = stream[50_000:]
    assert got == frames


@pytest.mark.parametrize("length", [-(2**31), -1, 16 * MIB + 1, 2**31 - 1])
def test_a_negative_or_huge_length_is_refused_before_any_memory_is_taken(
    pair: tuple[socket.socket, socket.socket], length: int
) -> None:
    client, server = pair
    buffer = make()
    client.sendall(struct.pack(">i", length) + b"some more")
    buffer.receive(server)
    with pytest.raises(FrameTooLarge):
        buffer.next_frame()
    assert buffer.capacity_bytes == FIRST_BYTES


def test_a_length_that_is_only_promised_takes_no_memory(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    buffer = make()
    client.sendall(struct.pack(">i", 15 * MIB) + b"x" * 100)
    assert drain(buffer, server) == []
    assert buffer.capacity_bytes == FIRST_BYTES


def test_a_buffer_grows_to_the_frame_and_goes_away_when_it_is_released(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    budget = MemoryBudget(4 * MIB)
    buffer = ReceiveBuffer(frame_bytes_max=2 * MIB, budget=budget)
    payload = bytes(MIB)
    stream = framed(payload)
    got = list[bytes]()
    while stream:
        client.sendall(stream[:60_000])
        got += drain(buffer, server)
        stream = stream[60_000:]
    assert got == [payload]
    assert buffer.is_empty
    assert budget.taken_bytes == buffer.capacity_bytes - FIRST_BYTES >= MIB
    buffer.release()
    assert budget.taken_bytes == buffer.capacity_bytes == 0


def test_without_memory_in_the_budget_nothing_is_received_until_there_is(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    budget = MemoryBudget(100_000)
    assert budget.take(90_000)
    buffer = ReceiveBuffer(frame_bytes_max=2 * MIB, budget=budget)
    stream = framed(bytes(40_000))
    client.sendall(stream)
    while buffer.receive(server) is not None:
        assert buffer.next_frame() is None
    budget.give_back(90_000)
    assert drain(buffer, server) == [bytes(40_000)]


def test_small_frames_do_not_need_the_budget(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    buffer = make(budget_bytes=0)
    frames = [bytes([n]) * 7_000 for n in range(20)]
    got = list[bytes]()
    for frame in frames:
        client.sendall(framed(frame))
        got += drain(buffer, server)
    client.sendall(b"".join(map(framed, frames)))
    got += drain(buffer, server)
    assert got == frames * 2


def test_a_client_that_streams_gets_a_larger_buffer(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    buffer = make()
    for _ in range(20):
        client.sendall(framed(bytes(1_000)) * 60)
        drain(buffer, server)
    assert FIRST_BYTES < buffer.capacity_bytes <= 256 * 1024


def test_a_length_that_cannot_be_is_met_once_all_before_it_were_taken(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    buffer = make(frame_bytes_max=100)
    client.sendall(framed(b"a") + framed(b"b") + struct.pack(">i", 101))
    buffer.receive(server)
    assert [bytes(frame) for frame in buffer.next_frames(5)] == [b"a", b"b"]
    with pytest.raises(FrameTooLarge):
        buffer.next_frames(5)


def test_what_is_gathered_is_all_that_is_there_up_to_a_limit(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    client.setblocking(False)
    buffer, frame, gathered = make(), framed(bytes(100_000)), 1
    stream = memoryview(frame * 60)
    while gathered:
        with suppress(BlockingIOError):
            stream = stream[client.send(stream) :]
        gathered = buffer.gather(server)
    assert buffer.capacity_bytes == GATHERED_BYTES
    frames = buffer.next_frames(100)
    assert len(frames) == GATHERED_BYTES // len(frame)
    assert all(frame == bytes(100_000) for frame in frames)


def test_nothing_more_is_gathered_where_memory_is_scarce(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    budget = MemoryBudget(1024 * 1024)
    assert budget.take(600 * 1024)
    buffer = ReceiveBuffer(frame_bytes_max=MIB, budget=budget)
    client.sendall(framed(b"a") * 10_000)
    while buffer.gather(server):
        pass
    assert buffer.capacity_bytes <= STREAMING_BYTES


@pytest.mark.parametrize(
    ("budget_bytes", "at_once", "frames_held"),
    [(64 * MIB, 6, 2), (64 * MIB, 1, 1), (1 * MIB, 6, 1)],
    ids=["one behind the other", "one by one", "memory is not plenty"],
)
def test_large_requests_that_follow_each_other_are_received_two_at_a_time(
    pair: tuple[socket.socket, socket.socket], budget_bytes: int, at_once: int, frames_held: int
) -> None:
    client, server = pair
    buffer = make(budget_bytes)
    payload = bytes(600_000)
    received = 0
    for _ in range(6 // at_once):
        left = memoryview(framed(payload) * at_once)
        while left:
            left = left[client.send(left[:100_000]) :]
            received += len(drain(buffer, server))
    assert received == 6
    assert buffer.capacity_bytes // len(payload) == frames_held


def test_memory_for_one_large_frame_is_enough_where_several_follow_each_other(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    buffer = make(budget_bytes=800_000)
    left, received = memoryview(framed(bytes(600_000)) * 3), 0
    while left:
        left = left[client.send(left[:100_000]) :]
        received += len(drain(buffer, server))
    assert received == 3
