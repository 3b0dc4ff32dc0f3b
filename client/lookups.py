"""Requests that go to the leaders of partitions, split by leader and put together again."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar, assert_never

from tidemark.client.codes import check, failed, left_out, raise_first
from tidemark.client.connection import Connection
from tidemark.client.descriptions import BrokerDescription, ListedOffset
from tidemark.client.limits import require_by_partition, require_partition
from tidemark.client.network import Network, address_of
from tidemark.client.offsets import (
    AtOffset,
    AtTime,
    BeforeEnd,
    Beginning,
    End,
    Isolation,
    MaxTime,
    OffsetSpec,
    Start,
)
from tidemark.client.retries import may_pass
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidemark.protocol.types import Epoch, Offset, TopicPartition

T = TypeVar("T")

_CONSUMER: Final = -1
_END: Final = -1
_BEGINNING: Final = -2
_MAX_TIME: Final = -3


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic, as most requests list them."""
    topics: dict[str, list[int]] = {}
    for topic_partition in partitions:
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return topics


async def require_partitions(network: Network, partitions: Collection[TopicPartition]) -> None:
    """Raise UNKNOWN_TOPIC_OR_PARTITION unless all of these exist, `TypeError` if one is none."""
    for each in partitions:
        require_partition(each)
    for topic, indexes in by_topic(partitions).items():
        count = len((await network.topic(topic)).partitions)
        if min(indexes) < 0:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has no partition {min(indexes)}"
            )
        if max(indexes) >= count:
            # The view may be older than the partition.
            await network.refresh([topic])
            count = len((await network.topic(topic)).partitions)
        if max(indexes) >= count:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic} has {count} partitions, no partition {max(indexes)}",
            )


async def ask_leaders(
    network: Network,
    partitions: Collection[TopicPartition],
    ask: Callable[
        [Connection, Sequence[TopicPartition]],
        Awaitable[Mapping[TopicPartition, T | RequestError]],
    ],
) -> dict[TopicPartition, T]:
    """What `ask` finds out from the leader of each partition.

    Partitions whose leader moved or cannot be reached are asked for again, the others are not.
    Raises the first error that will not pass, with the others as its notes, or the last one that
    did not. All leaders have been asked then.
    """
    await require_partitions(network, partitions)
    found: dict[TopicPartition, T] = {}

    async def attempt() -> dict[TopicPartition, T]:
        refusals: list[RequestError] = []
        groups, failure = _by_leader(network, [tp for tp in partitions if tp not in found])
        for leader, led in groups.values():
            try:
                connection = await network.pool.connection(address_of(leader))
                answers = await ask(connection, led)
            except OSError as error:
                failure = error
                continue
            for topic_partition in led:
                is_told = topic_partition in answers
                answer = answers[topic_partition] if is_told else left_out(topic_partition)
                if not isinstance(answer, RequestError):
                    found[topic_partition] = answer
                elif may_pass(answer):
                    failure = answer
                else:
                    refusals.append(answer)
        raise_first(refusals)
        if failure is not None:
            raise failure
        return found

    topics = frozenset(each.topic for each in partitions)
    with network.using(lambda: topics):
        return await network.retrying(attempt)


def _by_leader(
    network: Network, partitions: Iterable[TopicPartition]
) -> tuple[
    dict[int, tuple[BrokerDescription, list[TopicPartition]]], OSError | RequestError | None
]:
    """The partitions of each leader, and why some have none."""
    groups: dict[int, tuple[BrokerDescription, list[TopicPartition]]] = {}
    failure: OSError | RequestError | None = None
    for topic_partition in partitions:
        try:
            leader = network.leader(topic_partition)
        except RequestError as error:
            failure = error
        else:
            groups.setdefault(leader.node_id, (leader, []))[1].append(topic_partition)
    return groups, failure


async def list_offsets(
    network: Network, specs: Mapping[TopicPartition, OffsetSpec], isolation: Isolation
) -> dict[TopicPartition, ListedOffset]:
    """Where in their logs these places are; see `Admin.list_offsets`."""
    require_by_partition("places", specs, "End()")
    for spec in specs.values():
        if not isinstance(spec, OffsetSpec):
            raise TypeError(
                f"where to look is Beginning(), End(), AtTime or MaxTime(), not {spec!r}"
            )

    async def ask(
        connection: Connection, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ListedOffset | RequestError]:
        _require_spoken(connection, [specs[tp] for tp in partitions], isolation)
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index,
                        timestamp=_timestamp(specs[TopicPartition(topic, index)]),
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(partitions).items()
        ]
        answer = await connection.request(
            ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation, topics=topics),
            ListOffsetsResponse,
        )
        return {
            TopicPartition(topic.name, partition.partition_index): ListedOffset(
                offset=Offset(partition.offset),
                timestamp_ms=partition.timestamp,
                leader_epoch=Epoch(partition.leader_epoch),
            )
            if partition.error_code == 0
            else failed(partition.error_code, f"{topic.name}-{partition.partition_index}")
            for topic in answer.topics
            for partition in topic.partitions
        }

    return await ask_leaders(network, specs, ask)


def _require_spoken(
    connection: Connection, specs: Iterable[OffsetSpec], isolation: Isolation
) -> None:
    """Refuse what an old broker would misread: it takes any number below 0 for a timestamp."""
    version = connection.version(ListOffsetsRequest)
    if version < 7 and any(isinstance(spec, MaxTime) for spec in specs):
        check(ErrorCode.UNSUPPORTED_VERSION, "the broker cannot look for the largest timestamp")
    if version < 2 and isolation is Isolation.READ_COMMITTED:
        check(ErrorCode.UNSUPPORTED_VERSION, "the broker knows no transactions")


def _timestamp(spec: OffsetSpec) -> int:
    match spec:
        case Beginning():
            return _BEGINNING
        case End():
            return _END
        case MaxTime():
            return _MAX_TIME
        case AtTime(timestamp_ms):
            return max(timestamp_ms, 0)
        case _:
            assert_never(spec)


async def resolve_starts(
    network: Network, starts: Mapping[TopicPartition, Start], isolation: Isolation
) -> dict[TopicPartition, Offset]:
    """The offsets where reading begins; see `offsets.py` for what each start means."""
    ends = {
        tp: End() for tp, start in starts.items() if isinstance(start, End | BeforeEnd | AtTime)
    }
    beginnings = {
        tp: Beginning() for tp, start in starts.items() if isinstance(start, Beginning | BeforeEnd)
    }
    times = {tp: start for tp, start in starts.items() if isinstance(start, AtTime)}
    end = await list_offsets(network, ends, isolation) if ends else {}
    beginning = await list_offsets(network, beginnings, isolation) if beginnings else {}
    at_time = await list_offsets(network, times, isolation) if times else {}

    def resolve(tp: TopicPartition, start: Start) -> Offset:
        match start:
            case Beginning():
                return beginning[tp].offset
            case End():
                return end[tp].offset
            case AtOffset(offset):
                return offset
            case AtTime():
                return at_time[tp].offset if at_time[tp].offset >= 0 else end[tp].offset
            case BeforeEnd(records):
                return max(Offset(end[tp].offset - records), beginning[tp].offset)
            case _:
                assert_never(start)

    return {tp: resolve(tp, start) for tp, start in starts.items()}
