"""What is written in transactions, and how they end, as their coordinator says it."""

from tests.broker.handlers.asking import ask
from tests.broker.handlers.producing import batch
from tidemark.broker.handlers import write_txn_markers
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


async def write(replica: Replica, producer_id: int, *, epoch: int = 0) -> None:
    """A batch of one record in a transaction."""
    written = batch(producer_id=producer_id, producer_epoch=epoch, is_transactional=True)
    await replica.wait_committed(replica.append_own(written).end_offset)


async def end(
    node: Node,
    producer_id: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    bumps: bool = False,
    topic: str = "t",
    partitions: tuple[int, ...] = (0,),
) -> list[ErrorCode]:
    """What became of the markers."""
    asked = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=commit,
                coordinator_epoch=coordinator_epoch,
                transaction_version=2 if bumps else 0,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)],
            )
        ]
    )
    answer = await ask(write_txn_markers.handle, node, asked, 2)
    (result,) = answer.markers
    assert result.producer_id == producer_id
    return [ErrorCode(each.error_code) for each in result.topics[0].partitions]
