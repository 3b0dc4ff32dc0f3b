"""A load client that costs next to nothing: frames built beforehand, sent as fast as answers come.

What a client library costs is most of what a benchmark with one would measure. This one encodes a
request once and sends the same bytes again and again, with a number of them in flight on each
connection; answers are checked once and then only counted. So it shows the broker.

By hand: `python -m benchmarks.raw_client produce 127.0.0.1:9092 --batch-bytes 16384`.
"""

import argparse
import itertools
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidemark.broker.network.same_machine import send_unpaced_if_near
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages import create_topics, fetch, produce
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message

PRODUCE_VERSION: Final = 7
FETCH_VERSION: Final = 11
CREATE_TOPICS_VERSION: Final = 4
_CLIENT_ID: Final = "raw"
_LENGTH: Final = struct.Struct(">i")
_OFFSET: Final = struct.Struct(">q")
_OFFSET_MARK: Final = 0x0FF5E7_0FF5E7
"""Stands for the offset in a frame that is sent with one after the other."""
_RECEIVE_BYTES: Final = 1 << 20
_TOGETHER_BYTES_MAX: Final = 64 * 1024
_HEAD_BYTES: Final = 64
"""Less than any answer with records has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run moved, and how long it took."""

    requests: int
    size_bytes: int
    seconds: float

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.size_bytes / self.seconds


def batch_of(
    size_bytes: int,
    *,
    record_bytes: int = 1024,
    compression: Compression = Compression.NONE,
) -> bytes:
    """A batch of about `size_bytes`, full of records with random values of `record_bytes`.

    With a compression it has that size before; of each value every other byte is random then.
    """
    count = max(1, (size_bytes - 61) // (record_bytes + 8))
    now_ms = time.time_ns() // 1_000_000
    if compression is Compression.NONE:
        values = [os.urandom(record_bytes)] * count
    else:
        values = [_half_random(record_bytes) for _ in range(count)]
    records = [Record(timestamp_ms=now_ms, value=value) for value in values]
    return encode_batch(records, compression=compression)


def _half_random(size_bytes: int) -> bytes:
    value = bytearray(size_bytes)
    value[::2] = os.urandom(len(value[::2]))
    return bytes(value)


def produce_frame(topic: str, batch: bytes, *, acks: int, partition: int = 0) -> bytes:
    return produce_frame_to(topic, {partition: batch}, acks=acks)


def produce_frame_to(topic: str, batches: Mapping[int, bytes], *, acks: int = -1) -> bytes:
    """One request with a batch for each of several partitions."""
    request = produce.ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                partition_data=[
                    produce.PartitionProduceData(index=partition, records=batch)
                    for partition, batch in batches.items()
                ],
            )
        ],
    )
    return encode_request(request, PRODUCE_VERSION, 1, _CLIENT_ID)


def fetch_frame(
    topic: str, offset: int, *, bytes_max: int, partition: int = 0, rack: str = ""
) -> bytes:
    request = fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=bytes_max,
        rack_id=rack,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max
                    )
                ],
            )
        ],
    )
    return encode_request(request, FETCH_VERSION, 1, _CLIENT_ID)


def create_topic(address: tuple[str, int], topic: str, *, partitions: int = 1, flush: str) -> None:
    """Make a topic. Raises `RuntimeError` if the broker refuses."""
    request = create_topics.CreateTopicsRequest(
        topics=[
            create_topics.CreatableTopic(
                name=topic,
                num_partitions=partitions,
                replication_factor=1,
                assignments=(),
                configs=[create_topics.CreatableTopicConfig(name="flush", value=flush)],
            )
        ],
        timeout_ms=30_000,
    )
    with socket.create_connection(address) as connection:
        connection.sendall(encode_request(request, CREATE_TOPICS_VERSION, 1, _CLIENT_ID))
        answer = _decode(19, CREATE_TOPICS_VERSION, read_frame(connection))
    assert isinstance(answer, create_topics.CreateTopicsResponse)
    if answer.topics[0].error_code:
        raise RuntimeError(f"topic {topic} was refused: error {answer.topics[0].error_code}")


def produce_load(
    address: tuple[str, int],
    frame: bytes,
    *,
    requests: int,
    in_flight: int = 5,
    connections: int = 1,
    check: Callable[[bytes], None] | None = None,
) -> Load:
    """Send `frame` `requests` times, over so many connections, `in_flight` on each.

    `check` gets one answer before the clock starts; all others have to be of its size.
    """
    clients = [connect(address) for _ in range(connections)]
    try:
        clients[0].sendall(frame)
        answer = read_frame(clients[0])
        (check or check_produced)(answer)
        answer_bytes = len(answer) + _LENGTH.size
        started = time.perf_counter()
        _keep_in_flight(clients, frame, answer_bytes, requests, in_flight)
        seconds = time.perf_counter() - started
    finally:
        for client in clients:
            client.close()
    return Load(requests=requests, size_bytes=requests * len(frame), seconds=seconds)


def produce_load_of(
    address: tuple[str, int], frames: Iterator[bytes], *, requests: int, in_flight: int
) -> Load:
    """Send one frame after the other over one connection; their answers have to be of one size."""
    with connect(address) as client:
        first = next(frames)
        client.sendall(first)
        answer = read_frame(client)
        check_produced(answer)
        answer_bytes, received = len(answer) + _LENGTH.size, 0
        buffer = bytearray(64 * 1024)
        started = time.perf_counter()
        send_frames(client, list(itertools.islice(frames, in_flight)))
        sent, answered = in_flight, 0
        while answered < requests:
            size = client.recv_into(buffer)
            if not size:
                raise ConnectionError("the broker has closed the connection")
            answers, received = divmod(received + size, answer_bytes)
            answered += answers
            if more := min(answers, requests - sent):
                send_frames(client, list(itertools.islice(frames, more)))
                sent += more
        seconds = time.perf_counter() - started
    return Load(requests=requests, size_bytes=requests * len(first), seconds=seconds)


def _keep_in_flight(
    clients: Sequence[socket.socket], frame: bytes, answer_bytes: int, requests: int, in_flight: int
) -> None:
    """Every answer lets another request go, until all have been answered."""
    poll = select.epoll()
    by_descriptor = {client.fileno(): client for client in clients}
    received = dict.fromkeys(by_descriptor, 0)
    buffer = bytearray(64 * 1024)
    unsent, unanswered = requests, requests
    for descriptor, client in by_descriptor.items():
        poll.register(descriptor, select.EPOLLIN)
        first = min(in_flight, unsent)
        send_frames(client, [frame] * first)
        unsent -= first
    while unanswered:
        for descriptor, _ in poll.poll():
            client = by_descriptor[descriptor]
            size = client.recv_into(buffer)
            if not size:
                raise ConnectionError("the broker has closed the connection")
            answers, received[descriptor] = divmod(received[descriptor] + size, answer_bytes)
            unanswered -= answers
            if more := min(answers, unsent):
                send_frames(client, [frame] * more)
                unsent -= more
    poll.close()


def fetch_load(
    address: tuple[str, int],
    topic: str,
    *,
    end_offset: int,
    bytes_max: int,
    partition: int = 0,
    rack: str = "",
    ahead: bool = False,
) -> Load:
    """Read a partition from its start to `end_offset`, one fetch after the other.

    With a `rack`, from a replica that does not lead it. `ahead`: the next one is asked for when an
    answer begins to come, as what it has is known then, and not when it is there.

    Every batch has to have the size of the first one; so only the first is looked into.
    """
    requests = size_bytes = offset = 0
    frame = bytearray(
        fetch_frame(topic, _OFFSET_MARK, bytes_max=bytes_max, partition=partition, rack=rack)
    )
    offset_at = frame.index(_OFFSET.pack(_OFFSET_MARK))
    with connect(address) as client:

        def ask() -> None:
            _OFFSET.pack_into(frame, offset_at, offset)
            client.sendall(frame)

        ask()
        first = memoryview(bytearray(bytes_max + _RECEIVE_BYTES))
        batch_bytes, records_each = _first_batch(_read_frame_into(client, first))
        # As small as that of the reader that this one is compared to: it stays in the cache.
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        started = time.perf_counter()
        ask()
        while offset < end_offset:
            frame_bytes, left = _begin_frame(client, buffer)
            # Of what is not records there are a few dozen bytes: less than any batch.
            batches = frame_bytes // batch_bytes
            if not batches:
                raise RuntimeError(f"nothing came for offset {offset}")
            offset += batches * records_each
            size_bytes += frame_bytes
            requests += 1
            is_more = offset < end_offset
            if ahead and is_more:
                ask()
            _skip(client, buffer, left)
            if not ahead and is_more:
                ask()
        seconds = time.perf_counter() - started
    return Load(requests=requests, size_bytes=size_bytes, seconds=seconds)


def _first_batch(frame: memoryview) -> tuple[int, int]:
    answer = _decode(1, FETCH_VERSION, frame)
    assert isinstance(answer, fetch.FetchResponse)
    records = answer.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    _, header = next(iter_headers(records))
    return header.size_bytes, header.record_count


def check_produced(answer: bytes) -> None:
    """Raises `RuntimeError` if the broker refused the batch."""
    decoded = _decode(0, PRODUCE_VERSION, answer)
    assert isinstance(decoded, produce.ProduceResponse)
    error = decoded.responses[0].partition_responses[0].error_code
    if error:
        raise RuntimeError(f"the batch was refused: error {error}")


def _decode(api_key: int, version: int, frame: bytes | memoryview) -> Message:
    return decode_response(APIS[api_key], version, frame)[1]


def connect(address: tuple[str, int]) -> socket.socket:
    """Sends as fast as it is taken, whatever congestion control the host has."""
    client = socket.create_connection(address)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    send_unpaced_if_near(client)
    return client


def send_frames(client: socket.socket, frames: Sequence[bytes]) -> None:
    """One behind the other; small ones in one call, for which large ones are not copied: that took
    a quarter of what sending them does."""
    if len(frames) > 1 and len(frames[0]) <= _TOGETHER_BYTES_MAX:
        client.sendall(b"".join(frames))
    else:
        for frame in frames:
            client.sendall(frame)


def read_frame(client: socket.socket) -> bytes:
    buffer = memoryview(bytearray(_RECEIVE_BYTES))
    return bytes(_read_frame_into(client, buffer))


def _read_frame_into(client: socket.socket, buffer: memoryview) -> memoryview:
    """The next answer without its length; there is only one on its way."""
    size, end = 0, _LENGTH.size
    while size < end:
        received = client.recv_into(buffer[size:])
        if not received:
            raise ConnectionError("the broker has closed the connection")
        size += received
        if end == _LENGTH.size <= size:
            end += _LENGTH.unpack_from(buffer)[0]
    return buffer[_LENGTH.size : end]


def _begin_frame(client: socket.socket, buffer: memoryview) -> tuple[int, int]:
    """Receive what there is of the next answer; its size, and how much of it is still to come."""
    received = client.recv_into(buffer[:_HEAD_BYTES])
    if received < _LENGTH.size:
        raise ConnectionError("the broker has closed the connection, or answers byte by byte")
    (length,) = _LENGTH.unpack_from(buffer)
    return length, length + _LENGTH.size - received


def _skip(client: socket.socket, buffer: memoryview, left: int) -> None:
    """Receive so much over itself."""
    while left:
        received = client.recv_into(buffer if left >= len(buffer) else buffer[:left])
        if not received:
            raise ConnectionError("the broker has closed the connection")
        left -= received


def main() -> None:
    parser = argparse.ArgumentParser(description="Load for a Kafka broker, as cheap as can be.")
    parser.add_argument("what", choices=["produce", "fetch"])
    parser.add_argument("bootstrap", metavar="HOST:PORT")
    parser.add_argument("--topic", default=f"raw-{os.getpid()}")
    parser.add_argument("--flush", choices=["os", "commit"], default="os")
    parser.add_argument("--acks", type=int, default=-1)
    parser.add_argument("--batch-bytes", type=int, default=16 * 1024)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--fetch-bytes", type=int, default=1 << 20)
    chosen = parser.parse_args()
    host, _, port = chosen.bootstrap.rpartition(":")
    address = (host, int(port))
    batch = batch_of(chosen.batch_bytes, record_bytes=chosen.record_bytes)
    create_topic(address, chosen.topic, flush=chosen.flush)
    load = produce_load(
        address,
        produce_frame(chosen.topic, batch, acks=chosen.acks),
        requests=chosen.requests,
        in_flight=chosen.in_flight,
        connections=chosen.connections,
    )
    if chosen.what == "fetch":
        end_offset = (chosen.requests + 1) * read_header(batch).record_count
        load = fetch_load(
            address, chosen.topic, end_offset=end_offset, bytes_max=chosen.fetch_bytes
        )
    print(
        f"{load.requests_per_second:,.0f} requests/s, {load.bytes_per_second / 1e6:,.0f} MB/s, "
        f"{load.seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
