"""What can be done with a resource, as admin responses say it: a bit for each operation.

KIP-430.
"""

from collections.abc import Iterable
from typing import Final

from tidemark.protocol.acls import OPERATIONS, Operation


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


ALL_BITS: Final = {each: bits(operations) for each, operations in OPERATIONS.items()}
"""What whoever may do everything may do."""
