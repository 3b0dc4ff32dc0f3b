"""Transactions that nobody gets on with: decided ones do not end, and others outlive their time.

A coordinator that can write does what is due within a second or two; it may be away, or wait for
others, for as long as that takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.transactions.transaction_partition import TransactionPartition
from tidemark.partitions.state_machines.transactions.transaction import (
    Transaction,
    TransactionState,
)
from tidemark.testing.checkers.violation import Violation

if TYPE_CHECKING:
    from tidemark.testing.simulator.broker import Broker

STUCK: Final = "a transaction is over in time"
_PATIENCE_SECONDS: Final = 5.0
_CLOCKS_DIFFER: Final = 1.5
"""By how much at most, in the runs that have transactions."""


class Patience:
    """Of one run."""

    def __init__(self) -> None:
        # By coordinator and id: what was seen, and when what is due was so first.
        self._due: dict[tuple[TransactionPartition, str], tuple[object, float]] = {}

    def look(self, broker: Broker, served: TransactionPartition, now: float) -> None:
        """Raises `Violation`."""
        shard = served.shard
        for name, value in shard.list_ids():
            due_in = _due_in(value, is_marked=not shard.unmarked(name))
            if due_in is None or shard._held[name].unstored is not None or not _is_well(broker):
                self._due.pop((served, name), None)
                continue
            said = value.state, value.producer_id, value.epoch, value.started_ms
            seen, since = self._due.get((served, name), (None, 0.0))
            if seen != said:
                self._due[served, name] = said, now
            elif now - since > due_in + _PATIENCE_SECONDS:
                what = f"{name} is so since {since:.3f}, and it is {now:.3f}: {value}"
                raise Violation(STUCK, name, what)


def _due_in(value: Transaction, *, is_marked: bool) -> float | None:
    """After how many seconds its coordinator has to do something, whoever else does not."""
    if value.state is TransactionState.ONGOING:
        return _CLOCKS_DIFFER * value.timeout_ms / 1000
    return 0.0 if value.state.is_prepared and is_marked else None


def _is_well(broker: Broker) -> bool:
    """Whether it can do what it has to."""
    process, files = broker.process, broker.files
    is_slow = broker.disk_factor > 1 or broker.step_seconds
    is_full = files.capacity_bytes is not None or files.failing_syncs or broker.room.is_out
    return process is not None and not (is_slow or is_full or process.is_behind)
