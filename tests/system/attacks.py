"""What the tests of hostile clients share: a client that sends any bytes, one that behaves well
and must notice nothing, and a look at the broker from outside.
"""

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, TracebackType
from typing import Final, Self, TypeVar
from urllib.request import urlopen

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages import create_topics, fetch, produce
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message
from tidemark.testing.process import BrokerProcess

SECONDS: Final = 30.0
"""How long anything may take before a test gives up."""
M = TypeVar("M", bound=Message)


class Peer:
    """A blocking client that says what it is told to, whether that is the protocol or not."""

    def __init__(self, bootstrap: str, *, receive_buffer_bytes: int | None = None) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(SECONDS)
        self.socket.connect((host, int(port)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, frame: bytes) -> None:
        self.send(struct.pack(">i", len(frame)) + frame)

    def read_frame(self) -> bytes:
        """The next answer. Raises `EOFError` when the broker hung up instead."""
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)

    def is_closed(self) -> bool:
        """Whether the broker hangs up without another word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, request: Message, version: int, response: type[M]) -> M:
        self.send(encode_request(request, version, 7, "peer"))
        return self.read(request, version, response)

    def read(self, request: Message, version: int, response: type[M]) -> M:
        """The answer to `request`, which is the next that comes."""
        correlation_id, answer = decode_response(api_of(type(request)), version, self.read_frame())
        assert correlation_id == 7
        assert isinstance(answer, response)
        return answer

    def create_topic(self, topic: str, **configs: str) -> None:
        """`configs` have underscores for dots."""
        request = creation(
            topic, configs={name.replace("_", "."): v for name, v in configs.items()}
        )
        answer = self.ask(request, 5, create_topics.CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer

    def produce(self, topic: str, records: bytes, *, version: int = 9) -> ErrorCode:
        answer = self.ask(production(topic, records), version, produce.ProduceResponse)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def fetch(self, topic: str, offset: int = 0) -> fetch.PartitionData:
        """What there is from `offset` on, without waiting."""
        answer = self.ask(fetching(topic, offset), 12, fetch.FetchResponse)
        return answer.responses[0].partitions[0]

    def fetch_records(self, topic: str, offset: int = 0) -> list[Record]:
        """The records of the batches from `offset` on."""
        records = self.fetch(topic, offset).records
        assert isinstance(records, memoryview)
        return decode_records(records)

    def records_below(self, topic: str, end: int) -> Iterator[Record]:
        """All that is there, of batches of one record. There are no holes but where retention has
        gone on meanwhile."""
        offset = 0
        while offset < end:
            part = self.fetch(topic, offset)
            if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                assert offset < part.log_start_offset
                offset = part.log_start_offset
                continue
            assert isinstance(part.records, memoryview)
            assert part.records
            for record in decode_records(part.records):
                assert record.offset == offset
                yield record
                offset += 1

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError(f"the broker hung up after {len(data)} of {size} bytes")
            data += part
        return bytes(data)


def creation(
    topic: str, partitions: int = 1, configs: Mapping[str, str] = MappingProxyType({})
) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(
        timeout_ms=5000,
        topics=[
            create_topics.CreatableTopic(
                name=topic,
                num_partitions=partitions,
                replication_factor=1,
                assignments=(),
                configs=[
                    create_topics.CreatableTopicConfig(name=name, value=value)
                    for name, value in configs.items()
                ],
            )
        ],
    )


def production(topic: str, records: bytes, *, acks: int = -1) -> produce.ProduceRequest:
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=int(SECONDS * 1000),
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                partition_data=[produce.PartitionProduceData(index=0, records=records)],
            )
        ],
    )


def fetching(topic: str, offset: int, *, max_wait_ms: int = 0) -> fetch.FetchRequest:
    return fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50_000_000,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=50_000_000
                    )
                ],
            )
        ],
    )


def batch(*values: bytes, key: bytes | None = None) -> bytes:
    now_ms = int(time.time() * 1000)
    return encode_batch([Record(timestamp_ms=now_ms, key=key, value=value) for value in values])


ROUND_SECONDS_MAX: Final = 16.0
"""For a record and its reading back, on a machine that is busy with others."""


class Bystander:
    """A well-behaved client: produces a record, reads it back, and so on until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._peer = Peer(bootstrap)
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self.rounds = 0
        self.slowest_seconds = 0.0

    def start(self) -> None:
        self._peer.create_topic(self._topic)
        self._thread.start()

    def stop(self) -> None:
        """Raises what went wrong, and checks that nothing was lost or doubled."""
        self._stopping.set()
        self._thread.join()
        try:
            if self._failure is not None:
                raise self._failure
            assert self.rounds > 0
            records = self._peer.fetch_records(self._topic)
            assert [record.value for record in records] == [b"%d" % n for n in range(self.rounds)]
        finally:
            self._peer.socket.close()

    def wait_beyond(self, rounds: int) -> None:
        """Until it has done more than so many, whatever is done to the broker at the same time."""
        end = time.perf_counter() + ROUND_SECONDS_MAX
        while self.rounds <= rounds:
            assert time.perf_counter() < end, "nobody else is served"
            time.sleep(0.01)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                started = time.perf_counter()
                self._round()
                took = time.perf_counter() - started
                self.slowest_seconds = max(self.slowest_seconds, took)
                self._stopping.wait(0.01)
        except Exception as error:
            self._failure = error

    def _round(self) -> None:
        value = b"%d" % self.rounds
        assert self._peer.produce(self._topic, batch(value)) is ErrorCode.NONE
        got = self._peer.fetch_records(self._topic, self.rounds)
        assert [(record.offset, record.value) for record in got] == [(self.rounds, value)]
        self.rounds += 1


@contextmanager
def bystander(bootstrap: str, topic: str) -> Iterator[Bystander]:
    """A bystander as long as the block lasts, whose slowest round is held to some seconds."""
    client = Bystander(bootstrap, topic)
    client.start()
    try:
        yield client
    finally:
        client.stop()
    assert client.slowest_seconds < ROUND_SECONDS_MAX


def metric(broker: BrokerProcess, name: str, **labels: str) -> float:
    """One sample of `/metrics`."""
    with urlopen(f"http://{broker.http}/metrics", timeout=SECONDS) as answer:
        page = answer.read().decode()
    wanted = ",".join(f'{label}="{value}"' for label, value in labels.items())
    series = re.escape(f"{name}{{{wanted}}}" if labels else name)
    found = re.search(rf"^{series} (\S+)$", page, re.MULTILINE)
    assert found is not None, f"{series} is not in the metrics"
    return float(found[1])


def rss_bytes(pid: int) -> int:
    """The resident memory of a process."""
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096
