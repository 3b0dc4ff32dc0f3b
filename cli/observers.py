"""Who of a partition's replicas only observes it.

Metadata count observers among the replicas, and never among those in sync: of most partitions there
is nothing to be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId, TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Client, PartitionDescription

_PATIENCE_SECONDS: Final = 5.0


async def observers_of(
    client: Client, partitions: Mapping[TopicPartition, PartitionDescription]
) -> dict[TopicPartition, Sequence[NodeId]]:
    """The observers of each partition that has some. What brokers do not say in time is left out,
    and Kafka's brokers have none."""
    import trio

    asked = [at for at, each in partitions.items() if len(each.in_sync) < len(each.replicas)]
    with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
        found = await client.admin.describe_replicas(asked)
        return {
            at: [observer.node_id for observer in each.observers]
            for at, each in found.items()
            if each.observers
        }
    return {}
