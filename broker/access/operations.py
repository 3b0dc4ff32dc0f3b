"""What can be done with a resource, as admin responses say it: a bit for each operation.

KIP-430.
"""

from collections.abc import Iterable
from typing import Final

from tidemark.partitions.state_machines.access.acls import Operation, ResourceType

OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


ALL_BITS: Final = {each: bits(operations) for each, operations in OPERATIONS.items()}
"""What whoever may do everything may do."""
