"""A broker as the metadata has it."""

from uuid import UUID

from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.protocol.types import NodeId


def broker(node: NodeId, *, directory: int, incarnation: int = 1) -> BrokerMetadata:
    return BrokerMetadata(
        node_id=node,
        directory_id=UUID(int=directory),
        incarnation=incarnation,
        listeners={"PLAINTEXT": BrokerAddress(f"b{directory}", 9092)},
        peer=BrokerAddress(f"b{directory}", 9093),
        rack=None,
    )
