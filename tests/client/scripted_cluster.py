"""Two brokers whose one partition changes hands when a test says so.

One real broker cannot show that: its partitions have nowhere to go. These speak the protocol, keep
the log in common, and do to the next produce request what they were told to.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Literal

import trio

from tests.client.scripted_peer import ALL_VERSIONS, Peer, open_peer
from tests.client.sequence_model import SequenceModel
from tidemark.client.addresses import Address
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import fetch, list_offsets, metadata, produce
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.node_endpoint import NodeEndpoint
from tidemark.protocol.records.header import header_of, place, read_fields
from tidemark.protocol.schema import Message
from tidemark.protocol.types import Epoch, Offset

TOPIC = "t"
NODES = (1, 2)

Trouble = Literal["lost before", "lost after"] | ErrorCode
"""Cut the connection before or after the append, or answer with this."""


class ConnectionCut(Exception):
    """The broker hangs up."""


class ScriptedCluster:
    """See the module."""

    def __init__(self) -> None:
        self.leader = 1
        self.epoch = Epoch(0)
        self.troubles: list[Trouble] = []
        self.batches: list[bytes] = []
        self.damage: Callable[[bytes], bytes] = bytes
        """What a reader gets in a batch's place."""
        self.tells_leader = False
        """Whether it says who leads where it refuses a batch."""
        self.produce_seconds = 0.0
        """How long it takes to answer a Produce."""
        self.holds_fetches: set[int] = set()
        """Who keeps its answers to itself until it is let go."""
        self.hangs: set[int] = set()
        """Who answers no Produce."""
        self.held, self.let_go = trio.Event(), trio.Event()
        self.asked_for_metadata = 0
        self.metadata_seconds = 0.0
        """How long it takes to answer a Metadata."""
        self.asked_to_produce: list[int] = []
        """Who has got each Produce."""
        self._sequences = SequenceModel()
        self.addresses: dict[int, Address] = {}
        self._handlers: dict[type[Message], Callable[[int, Message], Message]] = {
            ApiVersionsRequest: lambda node, request: ALL_VERSIONS,
            metadata.MetadataRequest: lambda node, request: self._metadata(),
            InitProducerIdRequest: lambda node, request: InitProducerIdResponse(
                producer_id=7, producer_epoch=0
            ),
            produce.ProduceRequest: self._produce,
            fetch.FetchRequest: self._fetch,
            list_offsets.ListOffsetsRequest: self._list_offsets,
        }

    @property
    def bootstrap(self) -> list[str]:
        return [str(address) for address in self.addresses.values()]

    @property
    def end(self) -> Offset:
        return Offset(len(self._sequences.log))

    @property
    def values(self) -> list[bytes | None]:
        return self._sequences.log

    def elect(self, node: int) -> None:
        """Another leader, in another epoch."""
        self.leader, self.epoch = node, Epoch(self.epoch + 1)

    async def serve(self, node: int, peer: Peer) -> None:
        while True:
            header, request = await peer.receive()
            try:
                answer = self._handlers[type(request)](node, request)
            except ConnectionCut:
                return
            if isinstance(request, fetch.FetchRequest) and not _has_news(answer):
                await trio.sleep(0.005)
            if isinstance(request, fetch.FetchRequest) and node in self.holds_fetches:
                self.held.set()
                await self.let_go.wait()
            if isinstance(request, metadata.MetadataRequest):
                await trio.sleep(self.metadata_seconds)
            if isinstance(request, produce.ProduceRequest) and node in self.hangs:
                await trio.sleep_forever()
            if isinstance(request, produce.ProduceRequest):
                await trio.sleep(self.produce_seconds)
            await peer.answer(header, answer)

    def _metadata(self) -> metadata.MetadataResponse:
        self.asked_for_metadata += 1
        partition = metadata.MetadataResponsePartition(
            partition_index=0,
            leader_id=self.leader,
            leader_epoch=self.epoch,
            replica_nodes=NODES,
            isr_nodes=NODES,
        )
        return metadata.MetadataResponse(
            brokers=[
                metadata.MetadataResponseBroker(node_id=node, host=address.host, port=address.port)
                for node, address in self.addresses.items()
            ],
            cluster_id="scripted",
            controller_id=1,
            topics=[metadata.MetadataResponseTopic(name=TOPIC, partitions=[partition])],
        )

    def _produce(self, node: int, request: Message) -> Message:
        assert isinstance(request, produce.ProduceRequest)
        records = request.topic_data[0].partition_data[0].records
        assert records is not None
        self.asked_to_produce.append(node)
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble == "lost before":
            raise ConnectionCut
        code, offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        if isinstance(trouble, ErrorCode):
            code = trouble
        elif node == self.leader:
            code, offset = self._append(bytes(records))
        if trouble == "lost after":
            raise ConnectionCut
        tells = self.tells_leader and code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        current = produce.LeaderIdAndEpoch(leader_id=self.leader, leader_epoch=self.epoch)
        partition = produce.PartitionProduceResponse(
            index=0,
            error_code=code,
            base_offset=offset,
            current_leader=current if tells else produce.LeaderIdAndEpoch(),
        )
        host, port = self.addresses[self.leader].host, self.addresses[self.leader].port
        endpoint = NodeEndpoint(node_id=self.leader, host=host, port=port)
        return produce.ProduceResponse(
            responses=[produce.TopicProduceResponse(name=TOPIC, partition_responses=[partition])],
            node_endpoints=[endpoint] if tells else [],
        )

    def _append(self, records: bytes) -> tuple[ErrorCode, int]:
        end = len(self._sequences.log)
        code, offset = self._sequences.append(records)
        if code is ErrorCode.NONE and offset == end:
            batch = bytearray(records)
            place(batch, 0, base_offset=Offset(end), epoch=self.epoch)
            self.batches.append(bytes(batch))
        return code, offset

    def _fetch(self, node: int, request: Message) -> Message:
        assert isinstance(request, fetch.FetchRequest)
        asked = request.topics[0].partitions[0]
        code, records = ErrorCode.NONE, b""
        if node != self.leader:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif asked.current_leader_epoch != self.epoch:
            is_older = asked.current_leader_epoch < self.epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
        else:
            records = b"".join(
                self.damage(batch)
                for batch in self.batches
                if header_of(read_fields(batch)).last_offset >= asked.fetch_offset
            )
        data = fetch.PartitionData(
            partition_index=0, error_code=code, high_watermark=self.end, records=records
        )
        return fetch.FetchResponse(
            responses=[fetch.FetchableTopicResponse(topic=TOPIC, partitions=[data])]
        )

    def _list_offsets(self, node: int, request: Message) -> Message:
        assert isinstance(request, list_offsets.ListOffsetsRequest)
        asked = request.topics[0].partitions[0]
        is_leader = node == self.leader
        partition = list_offsets.ListOffsetsPartitionResponse(
            partition_index=0,
            error_code=0 if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            offset=0 if asked.timestamp == -2 else self.end,
        )
        return list_offsets.ListOffsetsResponse(
            topics=[list_offsets.ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])]
        )


def _has_news(answer: Message) -> bool:
    assert isinstance(answer, fetch.FetchResponse)
    data = answer.responses[0].partitions[0]
    return data.error_code != 0 or bool(data.records)


@asynccontextmanager
async def open_scripted_cluster() -> AsyncIterator[ScriptedCluster]:
    cluster = ScriptedCluster()
    async with AsyncExitStack() as stack:
        for node in NODES:
            script = partial(cluster.serve, node)
            cluster.addresses[node] = await stack.enter_async_context(open_peer(script))
        yield cluster
