"""What replicas know of transactions, compared with what their logs give when they are read anew.

Readers are told by the one, and by the other once somebody has started again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.producer_state import ProducerState
from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.protocol.types import Offset, ProducerId
from tidemark.testing.checkers.violation import require
from tidemark.testing.simulator.watch import pieces

AS_IN_ITS_LOG: Final = "a replica knows of the transactions in its log"


def judge_table(replica: GroupReplica) -> None:
    """Raises `Violation` if there is more in its log than it knows, or something else is open."""
    read = ProducerState()
    for data in pieces(replica.log):
        read.on_run(data, 0)
    known, said = replica.producers.transactions, read.table.transactions
    what = f"open are {known.opened}, and its log says {said.opened}"
    is_so = _are_as(_opened(known), _opened(said), replica.log_start)
    require(is_so, AS_IN_ITS_LOG, str(replica.key.partition), what)
    # An aborted one whose records are gone may be remembered, and need not.
    unknown = _aborted(said) - _aborted(known)
    what = f"in its log, and not known to it, are aborted ones: {sorted(unknown)}"
    require(not unknown, AS_IN_ITS_LOG, str(replica.key.partition), what)


def _are_as(
    known: Mapping[ProducerId, Offset], said: Mapping[ProducerId, Offset], log_start: Offset
) -> bool:
    """Whether the same are open. Of one that began below the log's start, the log may say that it
    began later, or nothing."""
    older = {producer_id: first for producer_id, first in known.items() if first < log_start}
    return known == {**said, **older}


def _opened(table: OpenTransactions) -> dict[ProducerId, Offset]:
    return {producer_id: opened.first_offset for producer_id, opened in table.opened.items()}


def _aborted(table: OpenTransactions) -> set[tuple[ProducerId, Offset]]:
    return {(over.producer_id, over.marker_offset) for over in table._aborted}
