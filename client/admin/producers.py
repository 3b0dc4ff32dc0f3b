"""Who writes to partitions."""

from collections.abc import Collection, Sequence

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import error_code
from tidemark.client.connection import Connection
from tidemark.client.lookups import ask_leaders, by_topic
from tidemark.client.producer_descriptions import ProducerDescription
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from tidemark.protocol.types import Epoch, Offset, ProducerId, TopicPartition

_Described = tuple[ProducerDescription, ...]


class ProducerAdmin(Calls):
    """The calls about producers."""

    async def describe_producers(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, _Described]:
        """The producers that each partition's leader knows of, idempotent and transactional ones.

        The first error is raised.
        """

        async def ask(
            connection: Connection, led: Sequence[TopicPartition]
        ) -> dict[TopicPartition, _Described | RequestError]:
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(led).items()
                ]
            )
            answer = await connection.request(request, DescribeProducersResponse)
            found: dict[TopicPartition, _Described | RequestError] = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    place, code = TopicPartition(topic.name, each.partition_index), each.error_code
                    if code == ErrorCode.NONE:
                        found[place] = tuple(map(_described, each.active_producers))
                    else:
                        found[place] = RequestError(
                            error_code(code), each.error_message or str(place)
                        )
            return found

        return await ask_leaders(self._network, partitions, ask)


def _described(state: ProducerState) -> ProducerDescription:
    begun = state.current_txn_start_offset
    return ProducerDescription(
        producer_id=ProducerId(state.producer_id),
        epoch=state.producer_epoch,
        last_sequence=state.last_sequence if state.last_sequence >= 0 else None,
        last_timestamp_ms=state.last_timestamp if state.last_timestamp >= 0 else None,
        coordinator_epoch=Epoch(state.coordinator_epoch) if state.coordinator_epoch >= 0 else None,
        transaction_start=Offset(begun) if begun >= 0 else None,
    )
