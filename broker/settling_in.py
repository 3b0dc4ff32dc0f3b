"""What a start goes without, in small steps for afterwards.

The first acknowledged record needs a third of the broker's modules less than all requests together
do. Each is imported where it is used first; but who comes late should not pay for it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Final, Literal

from tidemark.broker.handlers import HANDLERS
from tidemark.protocol.codec import codec_of
from tidemark.protocol.registry import APIS

# In an order in which none imports more than two others: each is a step, and requests wait for it.
_GROUPS: Final = (
    "identity",
    "requests",
    "group",
    "records",
    "offsets",
    "rebalance",
    "join",
    "consumer.pattern_program",
    "consumer.pattern",
    "consumer.group",
    "consumer.targets",
    "consumer.stepping",
    "consumer.heartbeat",
    "consumer.records",
    "kinds",
    "commits",
    "consumer.embedded",
    "consumer.writing",
    "migration",
    "deletion",
    "expiry",
    "leave",
    "retention",
    "sync",
    "consumer.classic_members",
    "consumer.leaving",
    "consumer.describing",
    "describe",
    "known_groups",
    "refusals",
    "shard",
    "consumer.restoring",
    "reading_back",
)
_TRANSACTIONS: Final = (
    "requests",
    "records",
    "decisions",
    "effects",
    "shard",
)
_COORDINATING: Final = (
    "tidemark.protocol.messages.consumer_offsets",
    "tidemark.partitions.state_machines.agenda",
    *(f"tidemark.partitions.state_machines.groups.{name}" for name in _GROUPS),
    "tidemark.broker.coordinating.working_partition",
    "tidemark.broker.groups.group_partition",
    "tidemark.broker.groups.group_loading",
    *(f"tidemark.partitions.state_machines.transactions.{name}" for name in _TRANSACTIONS),
    "tidemark.broker.transactions.transaction_partition",
    "tidemark.broker.transactions.transaction_loading",
)
_SERVING: Final = (
    "tidemark.broker.leaders_elsewhere",
    "tidemark.broker.handlers.produce_answers",
    "tidemark.broker.handlers.produce_work",
    "tidemark.broker.handlers.produce_bursts",
    "tidemark.broker.handlers.produce_runs",
    "tidemark.broker.metadata.partition_view",
    "tidemark.broker.replicas.fetching",
    "tidemark.broker.handlers.fetch_known",
    "tidemark.broker.metadata.running_configs",
)


def steps() -> Iterator[Callable[[], object]]:
    """Each takes a few milliseconds, or nothing where somebody has needed it already.

    One that raises `OSError`, as there was no descriptor to read a module with, can be done again.
    """
    for module in (*_COORDINATING, *_SERVING):
        yield partial(import_module, module)
    for key in HANDLERS:
        yield partial(HANDLERS.__getitem__, key)
        yield partial(_compile, key, "request")
        yield partial(_compile, key, "response")


def _compile(key: int, side: Literal["request", "response"]) -> None:
    api = APIS[key]
    codec_of(api.request if side == "request" else api.response, api.max_version)
