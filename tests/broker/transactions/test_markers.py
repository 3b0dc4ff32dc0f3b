"""Markers on their way: batched, tried again, and never at another's expense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metrics.transaction_counts import TransactionMetrics
from tidemark.broker.network.timers import Timers
from tidemark.broker.transactions.marker_sender import (
    RETRY_SECONDS_MAX,
    WRITE_SECONDS_MAX,
    MarkerSender,
)
from tidemark.broker.transactions.whereabouts import UNKNOWN_SECONDS, Places
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.state_machines.transactions.effects import Markers
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.types import Epoch, NodeId, ProducerId, TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))


def markers(producer_id: int, *partitions: TopicPartition) -> Markers:
    return Markers(
        transactional_id=f"txn-{producer_id}",
        producer_id=ProducerId(producer_id),
        epoch=5,
        is_commit=True,
        bumps_epoch=True,
        partitions=frozenset(partitions),
    )


class Owner:
    def __init__(self) -> None:
        self.is_current = True
        self.epoch = Epoch(7)
        self.done: list[tuple[ProducerId, TopicPartition]] = []

    def marked(self, markers: Markers, partition: TopicPartition) -> None:
        self.done.append((markers.producer_id, partition))


class Cluster:
    """Leaders that a test scripts: `refusing` partitions, and those that never answer."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, NodeId] = dict.fromkeys((A, B, C), NodeId(1))
        self.gone: set[TopicPartition] = set()
        self.refusing: dict[TopicPartition, ErrorCode] = {}
        self.silent: set[TopicPartition] = set()
        self.is_down = False
        self.requests: list[tuple[float, NodeId, list[tuple[int, TopicPartition]]]] = []

    def leader(self, partition: TopicPartition) -> NodeId | None:
        return self.leaders.get(partition)

    def is_gone(self, partition: TopicPartition) -> bool:
        return partition in self.gone

    async def ask(
        self,
        broker: NodeId,
        request: WriteTxnMarkersRequest,
        answer_type: type[WriteTxnMarkersResponse],
    ) -> WriteTxnMarkersResponse:
        assert all(marker.coordinator_epoch == 7 for marker in request.markers)
        assert all(marker.transaction_version == 2 for marker in request.markers)
        asked = [
            (marker.producer_id, TopicPartition(topic.name, partition))
            for marker in request.markers
            for topic in marker.topics
            for partition in topic.partition_indexes
        ]
        self.requests.append((trio.current_time(), broker, asked))
        if self.is_down:
            raise RequestError(ErrorCode.NETWORK_EXCEPTION)
        if self.silent & {partition for _, partition in asked}:
            await trio.sleep_forever()
        return answer_type(markers=[self._result(*each) for each in asked])

    def _result(self, producer_id: int, at: TopicPartition) -> WritableTxnMarkerResult:
        code = self.refusing.get(at, ErrorCode.NONE)
        result = WritableTxnMarkerPartitionResult(partition_index=at.partition, error_code=code)
        return WritableTxnMarkerResult(
            producer_id=producer_id,
            topics=[WritableTxnMarkerTopicResult(name=at.topic, partitions=[result])],
        )


@asynccontextmanager
async def sending(cluster: Cluster) -> AsyncIterator[tuple[MarkerSender, TransactionMetrics]]:
    timers, metrics = Timers(), TransactionMetrics()
    async with trio.open_nursery() as tasks:
        tasks.start_soon(timers.run)
        yield MarkerSender(cluster, cluster.ask, tasks, timers, metrics), metrics
        tasks.cancel_scope.cancel()


async def test_what_goes_to_one_broker_at_a_time_goes_in_one_request() -> None:
    cluster, owner = Cluster(), Owner()
    cluster.leaders[C] = NodeId(2)
    async with sending(cluster) as (sender, metrics):
        sender.send(owner, markers(1, A, B))
        sender.send(owner, markers(2, A, C))
        assert metrics.markers_owed == 4
        await wait_all_tasks_blocked()
        by_broker = {broker: asked for _, broker, asked in cluster.requests}
        assert len(cluster.requests) == 2
        assert by_broker == {1: [(1, A), (1, B), (2, A)], 2: [(2, C)]}
        assert sorted(owner.done) == [(1, A), (1, B), (2, A), (2, C)]
        assert (metrics.markers_owed, metrics.markers_written.value) == (0, 4)


async def test_what_is_refused_is_asked_of_whoever_leads_then(autojump_clock: MockClock) -> None:
    cluster, owner = Cluster(), Owner()
    cluster.refusing[B] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    async with sending(cluster) as (sender, metrics):
        sender.send(owner, markers(1, A, B))
        await trio.sleep(1)
        assert owner.done == [(1, A)]
        assert metrics.marker_retries.value > 1
        del cluster.refusing[B]
        cluster.leaders[B] = NodeId(2)
        await trio.sleep(RETRY_SECONDS_MAX)
        assert owner.done == [(1, A), (1, B)]
        assert cluster.requests[-1][1:] == (2, [(1, B)])


async def test_it_is_tried_for_ever_and_ever_less_often(autojump_clock: MockClock) -> None:
    cluster, owner = Cluster(), Owner()
    cluster.is_down = True
    async with sending(cluster) as (sender, _):
        sender.send(owner, markers(1, A))
        await trio.sleep(60)
        assert 30 <= len(cluster.requests) <= 40
        del cluster.leaders[A]
        asked = len(cluster.requests)
        await trio.sleep(60)
        assert len(cluster.requests) <= asked + 1, "nobody is asked about what nobody leads"
        assert owner.done == []
        cluster.is_down, cluster.leaders[A] = False, NodeId(3)
        await trio.sleep(RETRY_SECONDS_MAX)
        assert owner.done == [(1, A)]


async def test_a_partition_without_a_majority_holds_nobody_up(autojump_clock: MockClock) -> None:
    cluster, owner = Cluster(), Owner()
    cluster.silent.add(A)
    async with sending(cluster) as (sender, _):
        sender.send(owner, markers(1, A))
        await trio.sleep(WRITE_SECONDS_MAX + 1)
        for number in range(2, 30):
            sender.send(owner, markers(number, B))
            await wait_all_tasks_blocked()
            assert owner.done[-1] == (number, B)
        cluster.silent.clear()
        await trio.sleep(2 * WRITE_SECONDS_MAX)
        assert owner.done[-1] == (1, A)


async def test_a_marker_that_comes_too_late_is_there(autojump_clock: MockClock) -> None:
    cluster, owner = Cluster(), Owner()
    cluster.refusing[A] = ErrorCode.INVALID_PRODUCER_EPOCH
    cluster.gone.add(B)
    async with sending(cluster) as (sender, _):
        sender.send(owner, markers(1, A, B))
        await trio.sleep(0.01)
        assert sorted(owner.done) == [(1, A), (1, B)], "and none is needed where nothing is left"


async def test_who_coordinates_no_more_sends_no_more(autojump_clock: MockClock) -> None:
    cluster, owner = Cluster(), Owner()
    cluster.is_down = True
    async with sending(cluster) as (sender, metrics):
        sender.send(owner, markers(1, A))
        await trio.sleep(1)
        asked = len(cluster.requests)
        owner.is_current = False
        await trio.sleep(10)
        assert len(cluster.requests) == asked
        assert (metrics.markers_owed, owner.done) == (0, [])


class NoTopics:
    """A broker that knows of no topic, and hears of deletions."""

    def __init__(self) -> None:
        self.deleted: list[Callable[[str], None]] = []

    def get(self, name: str) -> Topic | None:
        del name
        return None

    def when_deleted(self, callback: Callable[[str], None]) -> None:
        self.deleted.append(callback)


async def test_a_topic_that_is_unknown_may_be_one_that_was_not_heard_of_yet(
    autojump_clock: MockClock,
) -> None:
    topics = NoTopics()
    places = Places(topics, lambda _: (None, Epoch(0)), Timers())
    assert not places.is_gone(A)
    await trio.sleep(UNKNOWN_SECONDS - 1)
    assert not places.is_gone(A)
    await trio.sleep(1)
    assert places.is_gone(A)
    other = TopicPartition("other", 0)
    for hear_of in topics.deleted:
        hear_of("other")
    assert places.is_gone(other), "its deletion was seen"


async def test_a_partition_that_its_topic_does_not_have_was_of_an_earlier_one(
    autojump_clock: MockClock,
) -> None:
    topics = Shrunk()
    places = Places(topics, lambda _: (NodeId(1), Epoch(0)), Timers())
    assert not places.is_gone(A)
    assert not places.is_gone(B), "there may be more than have been heard of"
    await trio.sleep(UNKNOWN_SECONDS - 1)
    assert not places.is_gone(A)
    assert not places.is_gone(B)
    await trio.sleep(1)
    assert not places.is_gone(A)
    assert places.is_gone(B)
    topics.partitions = 2
    assert not places.is_gone(B)


class Shrunk(NoTopics):
    """A broker whose topics were deleted, and made anew with fewer partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.partitions = 1

    def get(self, name: str) -> Topic | None:
        metadata = TopicMetadata(
            name=name,
            id=UUID(int=1),
            assignments=((NodeId(1),),) * self.partitions,
            configs={},
            created_ms=0,
        )
        return Topic.of(metadata, {})
