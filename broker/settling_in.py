"""What a start goes without, in small steps for afterwards.

The first acknowledged record needs a third of the broker's modules less than all requests together
do. Each is imported where it is used first; but who comes late should not pay for it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Final

from tidemark.broker.handlers import HANDLERS
from tidemark.protocol.codec import codec_of
from tidemark.protocol.registry import APIS

# In an order in which none imports many of those behind it.
_COORDINATING: Final = (
    "tidemark.protocol.messages.consumer_offsets",
    "tidemark.partitions.state_machines.groups.records",
    "tidemark.partitions.state_machines.groups.offsets",
    "tidemark.partitions.state_machines.groups.join",
    "tidemark.partitions.state_machines.groups.consumer.group",
    "tidemark.partitions.state_machines.groups.consumer.heartbeat",
    "tidemark.partitions.state_machines.groups.shard",
    "tidemark.broker.groups.group_partition",
    "tidemark.broker.groups.group_loading",
    "tidemark.partitions.state_machines.transactions.records",
    "tidemark.partitions.state_machines.transactions.shard",
    "tidemark.broker.transactions.transaction_partition",
    "tidemark.broker.transactions.transaction_loading",
)


def steps() -> Iterator[Callable[[], object]]:
    """Each takes a few milliseconds, or nothing where somebody has needed it already."""
    for module in _COORDINATING:
        yield partial(import_module, module)
    for key in HANDLERS:
        yield partial(HANDLERS.__getitem__, key)
        api = APIS[key]
        yield partial(codec_of, api.request, api.max_version)
        yield partial(codec_of, api.response, api.max_version)
