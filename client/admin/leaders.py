"""Leaders: have partitions led by other brokers, or by those that are to lead them first."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check, error_code, left_out, raise_first
from tidemark.client.connection import Connection
from tidemark.client.leader_descriptions import ElectedLeader, MovedLeader
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import move_leaders as messages
from tidemark.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    TopicPartitions,
)
from tidemark.protocol.messages.move_leaders import MoveLeadersRequest, MoveLeadersResponse
from tidemark.protocol.types import NodeId, TopicPartition

MOVE_SECONDS: Final = 30.0
"""What has not happened by then is given up, if nobody says otherwise."""
_LATE_SECONDS: Final = 10.0
"""How much later an answer may come: the cluster's metadata may be without a leader meanwhile."""


class LeaderAdmin(Calls):
    """The calls about who leads partitions."""

    async def move_leader(
        self,
        topic: str,
        partition: int,
        *,
        to: int,
        timeout_seconds: float = MOVE_SECONDS,
        reason: str = "",
        dry_run: bool = False,
    ) -> MovedLeader:
        """Have a partition led by the broker `to`, one of its replicas, and wait until it is.

        Writes go on, but for some tens of milliseconds in which they are held. Raises
        `RequestError` if it is refused, or came to nothing by `timeout_seconds`; then the partition
        is led as before. With `dry_run` only what would be refused at once is. That `to` leads
        already is no error. Kafka's brokers do not know this request.
        """
        at = TopicPartition(topic, partition)
        (moved,) = await self.move_leaders(
            {at: to}, timeout_seconds=timeout_seconds, reason=reason, dry_run=dry_run
        )
        if moved.error is not None:
            raise moved.error
        return moved

    async def move_leaders(
        self,
        targets: Mapping[TopicPartition, int],
        *,
        timeout_seconds: float = MOVE_SECONDS,
        reason: str = "",
        dry_run: bool = False,
    ) -> Sequence[MovedLeader]:
        """As `move_leader`, of several at once; what became of each, in the order of `targets`."""
        request = MoveLeadersRequest(
            moves=[
                messages.LeaderMove(topic=at.topic, partition=at.partition, target=target)
                for at, target in targets.items()
            ],
            reason=reason,
            timeout_ms=int(timeout_seconds * 1000),
            validate_only=dry_run,
        )

        async def ask(connection: Connection) -> Sequence[MovedLeader]:
            answer = await connection.request(
                request, MoveLeadersResponse, patience_seconds=timeout_seconds + _LATE_SECONDS
            )
            check(answer.error_code, answer.error_message or "MoveLeaders")
            raise_first([left_out(at) for at in [*targets][len(answer.moves) :]])
            return [
                _moved(at, NodeId(target), each)
                for (at, target), each in zip(targets.items(), answer.moves, strict=True)
            ]

        # A second time finds the wish of the first one, or that it has come true.
        return await self._on_any_broker(ask)

    async def elect_leaders(
        self,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout_seconds: float = MOVE_SECONDS,
    ) -> Sequence[ElectedLeader]:
        """Have these partitions, or all, led by their preferred leaders, and wait until they are.

        Of all, only those are returned whose leader was another one. Any Kafka broker knows it.
        """
        request = ElectLeadersRequest(
            topic_partitions=None if partitions is None else _by_topic(partitions),
            timeout_ms=int(timeout_seconds * 1000),
        )

        async def ask(connection: Connection) -> Sequence[ElectedLeader]:
            answer = await connection.request(
                request, ElectLeadersResponse, patience_seconds=timeout_seconds + _LATE_SECONDS
            )
            check(answer.error_code, "ElectLeaders")
            return [
                _elected(TopicPartition(topic.topic, each.partition_id), each)
                for topic in answer.replica_election_results
                for each in topic.partition_result
            ]

        # Kafka's brokers answer on the controller only.
        return await self._on_controller(ask)


def _by_topic(partitions: Collection[TopicPartition]) -> Sequence[TopicPartitions]:
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    return [TopicPartitions(topic=topic, partitions=each) for topic, each in topics.items()]


def _about(at: TopicPartition, sentence: str | None) -> str:
    """What a broker says of a partition, which is named once. Not every broker says something."""
    if sentence is None:
        return str(at)
    is_named = str(at) in (word.strip(",;:") for word in sentence.split())
    return sentence if is_named else f"{at}: {sentence}"


def _elected(at: TopicPartition, result: PartitionResult) -> ElectedLeader:
    error = None
    if result.error_code != ErrorCode.NONE:
        error = RequestError(error_code(result.error_code), _about(at, result.error_message))
    return ElectedLeader(partition=at, error=error)


def _moved(at: TopicPartition, target: NodeId, moved: messages.MovedLeader) -> MovedLeader:
    error = None
    if moved.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
        error = RequestError(error_code(moved.error_code), _about(at, moved.error_message))
    return MovedLeader(
        partition=at,
        target=target,
        leader=NodeId(moved.leader) if moved.leader >= 0 else None,
        attempts=moved.attempts,
        catch_up_seconds=moved.catch_up_us / 1e6,
        pause_seconds=moved.pause_us / 1e6,
        error=error,
    )
