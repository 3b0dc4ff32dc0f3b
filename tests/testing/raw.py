"""A client that says what it is told to, in the version it is told to, and shows what came back."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages import fetch, list_offsets, produce
from tidemark.protocol.messages import offset_for_leader_epoch as epoch_end
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message

M = TypeVar("M", bound=Message)

LATEST: Final = -1
_CORRELATION_ID: Final = 7


class RawClient:
    """One connection to one broker: one request at a time. Made by `open_raw`."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def ask(self, request: Message, version: int, response: type[M]) -> M:
        await self._stream.send_all(encode_request(request, version, _CORRELATION_ID, "raw"))
        (length,) = struct.unpack(">i", await self._read(4))
        frame = await self._read(length)
        correlation_id, answer = decode_response(api_of(type(request)), version, frame)
        assert correlation_id == _CORRELATION_ID
        assert isinstance(answer, response)
        return answer

    async def produce(
        self, topic: str, records: bytes, *, version: int = 12, acks: int = -1
    ) -> produce.ProduceResponse:
        """The answer for partition 0, with all that goes with it."""
        data = produce.PartitionProduceData(index=0, records=records)
        request = produce.ProduceRequest(
            acks=acks,
            timeout_ms=30_000,
            topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
        )
        return await self.ask(request, version, produce.ProduceResponse)

    async def fetch(
        self, topic: str, offset: int = 0, *, epoch: int = -1, wait_ms: int = 0, version: int = 12
    ) -> fetch.PartitionData:
        wanted = fetch.FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            partition_max_bytes=1 << 20,
        )
        request = fetch.FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1 if wait_ms else 0,
            topics=[fetch.FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = await self.ask(request, version, fetch.FetchResponse)
        return answer.responses[0].partitions[0]

    async def list_end(
        self, topic: str, *, epoch: int = -1, version: int = 6
    ) -> list_offsets.ListOffsetsPartitionResponse:
        asked = list_offsets.ListOffsetsPartition(
            partition_index=0, current_leader_epoch=epoch, timestamp=LATEST
        )
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        answer = await self.ask(request, version, list_offsets.ListOffsetsResponse)
        return answer.topics[0].partitions[0]

    async def epoch_end(
        self, topic: str, epoch: int, *, current: int = -1, version: int = 4
    ) -> epoch_end.EpochEndOffset:
        asked = epoch_end.OffsetForLeaderPartition(
            partition=0, current_leader_epoch=current, leader_epoch=epoch
        )
        request = epoch_end.OffsetForLeaderEpochRequest(
            topics=[epoch_end.OffsetForLeaderTopic(topic=topic, partitions=[asked])]
        )
        answer = await self.ask(request, version, epoch_end.OffsetForLeaderEpochResponse)
        return answer.topics[0].partitions[0]

    async def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            part = await self._stream.receive_some()
            if not part:
                raise EOFError("the broker hung up")
            self._received += part
        data = bytes(self._received[:size])
        del self._received[:size]
        return data


@asynccontextmanager
async def open_raw(address: str) -> AsyncIterator[RawClient]:
    """Connect to `host:port`."""
    host, _, port = address.rpartition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        yield RawClient(stream)


def batch(
    *values: bytes, sequence: int | None = None, producer_id: int = 4711, producer_epoch: int = 0
) -> bytes:
    """A batch as a producer makes it: with a sequence, as an idempotent one."""
    records = [Record(timestamp_ms=1_700_000_000_000, key=None, value=value) for value in values]
    if sequence is None:
        return encode_batch(records)
    return encode_batch(
        records,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )
