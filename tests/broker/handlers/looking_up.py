"""What ListOffsets is answered, of one partition."""

from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import list_offsets
from tidemark.broker.node import Node
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)


async def offset(
    node: Node,
    timestamp: int,
    version: int = 9,
    *,
    topic: str = "t",
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch
                    )
                ],
            )
        ],
    )
    answer = await ask(list_offsets.handle, node, asked, version)
    return answer.topics[0].partitions[0]
