"""Asking leaders for all that is committed, and to be certain that they lead. A Tidemark broker's.

One round of questions; whoever asks has its own patience.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfirmedEnd
from tidemark.client.lookups import ask_leaders, by_topic
from tidemark.client.network import Network, address_of
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.confirm_leadership import (
    ConfirmedPartition,
    ConfirmLeadershipRequest,
    ConfirmLeadershipResponse,
    ConfirmTopic,
)
from tidemark.protocol.types import Epoch, Offset, TopicPartition


async def confirmed_ends(
    network: Network, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ConfirmedEnd]:
    """For each, all that was committed when this was called. Tried again while that may help."""
    return await ask_leaders(network, partitions, partial(_ask, network))


async def confirm_once(
    network: Network, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ConfirmedEnd | OSError | RequestError]:
    """The same, asked once; or why it could not be said."""
    found: dict[TopicPartition, ConfirmedEnd | OSError | RequestError] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        try:
            by_leader.setdefault(network.leader(partition).node_id, []).append(partition)
        except RequestError as error:
            found[partition] = error
    for led in by_leader.values():
        try:
            leader = network.leader(led[0])
            connection = await network.pool.connection(address_of(leader))
            found |= await _ask(network, connection, led)
        except (OSError, RequestError) as error:
            found |= dict.fromkeys(led, error)
    return found


async def _ask(
    network: Network, connection: Connection, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ConfirmedEnd | RequestError]:
    patience_seconds = network.settings.confirm_timeout_seconds
    request = ConfirmLeadershipRequest(
        topics=[
            ConfirmTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ],
        timeout_ms=int(patience_seconds * 1000),
    )
    answer = await connection.request(
        request, ConfirmLeadershipResponse, patience_seconds=patience_seconds
    )
    check(answer.error_code, "confirming who leads", answer.error_message)
    return {
        TopicPartition(topic.topic, each.partition): _confirmed(topic.topic, each)
        for topic in answer.topics
        for each in topic.partitions
    }


def _confirmed(topic: str, answer: ConfirmedPartition) -> ConfirmedEnd | RequestError:
    code = error_code(answer.error_code)
    if code is not ErrorCode.NONE:
        return RequestError(code, answer.error_message or f"{topic}-{answer.partition}")
    return ConfirmedEnd(
        high_watermark=Offset(answer.high_watermark), leader_epoch=Epoch(answer.leader_epoch)
    )
