"""Micro-batches that are stored exactly once: tasks prepare transactions, the driver ends them.

    task i     begins a transaction under the id <name>-i, stores its rows, leaves it open, and
               tells the driver (`Prepared`)
    driver 1.  sees that all of them are open still
           2.  notes what it is about to commit: `Decision`, one write
           3.  commits them one after the other
    Spark      notes in the checkpoint that the batch is done

Spark runs a batch again that its checkpoint does not call done. What happens then depends on
whether the note of step 2 is there, which is one write:

* Without it, nothing was committed. Tasks begin anew under the same ids, which aborts what the
  ones before have left open.
* With it, tasks write nothing (`Decided`), and the driver goes on with step 3. To commit once more
  what is committed is nothing.

One thing may come between: brokers abort what has been open for too long. After step 2 that can
be a part of a batch, if the driver dies there and comes back later than that; see `finish`.
"""

import itertools
import json
import logging
from collections.abc import Sequence
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from tidemark.client.blocking import BlockingClient
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.transaction_descriptions import PreparedTransaction
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import Offset, ProducerId, TopicPartition
from tidemark.protocol.values import dataclass

log = logging.getLogger(__name__)

NOTE_BYTES_MAX: Final = 4096
"""As brokers bound what goes with a commit, by default."""
_NOT_OPEN: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class NotStored(TidemarkError):
    """A batch whose transactions could not all be committed."""


@dataclass(frozen=True, slots=True)
class Prepared(WriterCommitMessage):
    """What a task says whose rows wait for the driver."""

    name: str
    """What all transactional ids of this query begin with."""
    rows: int
    topic: str
    """One of those that were written to."""
    transaction: PreparedTransaction


@dataclass(frozen=True, slots=True)
class Decided(WriterCommitMessage):
    """What a task says that has found its batch decided, and has written nothing."""

    name: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What the driver notes before it commits a batch: which transactions, and where the note is.

    It is the commit of a group: the batch for an offset, the transactions as what goes with it.
    """

    batch: int
    place: TopicPartition
    transactions: tuple[PreparedTransaction, ...]


def find_decision(client: BlockingClient, name: str, batch: int) -> Decision | None:
    """That of this batch, if there is one."""
    notes = client.run(client.admin.list_group_offsets, name)
    for place, note in notes.items():
        if note.offset == batch and note.metadata:
            return Decision(batch, place, _transactions(name, note.metadata))
    return None


def commit_batch(
    client: BlockingClient, batch: int, messages: Sequence[Prepared | Decided]
) -> None:
    """Commit what the tasks have prepared, or go on with it where it was decided before.

    Raises `NotStored`, and `ConfigError` for too many tasks.
    """
    name = messages[0].name
    prepared = [each for each in messages if isinstance(each, Prepared)]
    transactions = tuple(each.transaction for each in prepared)
    decision = find_decision(client, name, batch)
    if decision is None:
        text = _text(name, transactions)
        check_open(client, transactions)
        place = TopicPartition(min(each.topic for each in prepared), 0)
        decision = Decision(batch, place, transactions)
        _note(client, name, decision, text)
    elif prepared:
        raise NotStored(
            f"batch {batch} was decided while its tasks ran: is the query running twice, on the"
            " same checkpoint? Stop one of them"
        )
    finish(client, name, decision)


def abort_left(client: BlockingClient, name: str, first: int) -> None:
    """Abort what tasks with numbers from `first` on have left open, in a start that had more tasks
    and died in the middle of a batch: readers of committed records would wait for them to run out.

    Only once a batch is committed, of which they may be.
    """
    for number in itertools.count(first):
        transactional_id = f"{name}-{number}"
        try:
            now = client.run(client.admin.describe_transaction, transactional_id)
        except RequestError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            return
        if now.state == "Ongoing":
            client.run(client.admin.fence_producer, transactional_id)


def commit_once(client: BlockingClient, prepared: Sequence[Prepared]) -> None:
    """Commit what the tasks of a job have prepared that is not run again."""
    check_open(client, [each.transaction for each in prepared])
    for each in prepared:
        client.run(client.admin.end_transaction, each.transaction, commit=True)


def abort(client: BlockingClient, batch: int | None, messages: Sequence[Prepared]) -> None:
    """Abort what tasks have prepared, but for what it is decided to commit."""
    decision = None if batch is None else find_decision(client, messages[0].name, batch)
    kept = () if decision is None else decision.transactions
    for each in messages:
        if each.transaction in kept:
            continue
        try:
            client.run(client.admin.end_transaction, each.transaction, commit=False)
        except RequestError as error:
            # It is aborted by the next task of this id, or when its time has run out.
            log.warning("the transaction %s: %s", each.transaction.transactional_id, error)


def check_open(client: BlockingClient, transactions: Sequence[PreparedTransaction]) -> None:
    """Raise `NotStored` if one has been aborted, or somebody else has its id by now."""
    for each in transactions:
        try:
            now = client.run(client.admin.describe_transaction, each.transactional_id)
        except RequestError as error:
            if error.code not in _NOT_OPEN:
                raise
            now = None
        if now is None or (now.state, now.producer_id, now.epoch) != (
            "Ongoing",
            each.producer_id,
            each.epoch,
        ):
            raise NotStored(
                f"the transaction {each.transactional_id} is not open any more: it ran out, or"
                " another task or query has begun one under this id. Nothing of this batch is"
                " stored. Start the query again; if batches take longer than the option"
                " kafka.transaction.timeout.ms, raise it, or have smaller ones with"
                " maxOffsetsPerTrigger; and leave spark.speculation off"
            )


def finish(client: BlockingClient, name: str, decision: Decision) -> None:
    """Commit what was decided. Raises `NotStored` for what brokers have aborted meanwhile."""
    lost = [each for each in decision.transactions if not _is_committed(client, each)]
    if not lost:
        return
    ids = ", ".join(each.transactional_id for each in lost)
    if len(lost) == len(decision.transactions):
        # As if it had never been decided.
        _note(client, name, decision, "")
        raise NotStored(
            f"batch {decision.batch} was about to be committed when the query ended, and has run"
            " out since (the option kafka.transaction.timeout.ms). Nothing of it is stored. Start"
            " the query again: it is written anew"
        )
    raise NotStored(
        f"batch {decision.batch} was being committed when the query ended, and a part of it has run"
        f" out since (the option kafka.transaction.timeout.ms): {ids}. The rest is stored. To have"
        f" all of it written again, and the rest twice, delete the group {name} (tidemark group"
        f" delete {name}) and start the query again"
    )


def _is_committed(client: BlockingClient, transaction: PreparedTransaction) -> bool:
    try:
        client.run(client.admin.end_transaction, transaction, commit=True)
    except RequestError as error:
        if error.code not in _NOT_OPEN:
            raise
        return False
    return True


def _note(client: BlockingClient, name: str, decision: Decision, text: str) -> None:
    note = CommittedOffset(offset=Offset(decision.batch), metadata=text)
    client.run(client.admin.alter_group_offsets, name, {decision.place: note})


def _text(name: str, transactions: Sequence[PreparedTransaction]) -> str:
    """As JSON: the number in the id, producer id and epoch of each."""
    text = json.dumps(
        [
            [int(each.transactional_id.removeprefix(f"{name}-")), each.producer_id, each.epoch]
            for each in transactions
        ],
        separators=(",", ":"),
    )
    if len(text) > NOTE_BYTES_MAX:
        raise ConfigError(
            f"{len(transactions)} tasks are too many to be committed together (the option"
            " exactlyOnce): some 200 are not; coalesce the rows to fewer, as in df.coalesce(100)"
        )
    return text


def _transactions(name: str, text: str) -> tuple[PreparedTransaction, ...]:
    return tuple(
        PreparedTransaction(
            transactional_id=f"{name}-{number}", producer_id=ProducerId(producer_id), epoch=epoch
        )
        for number, producer_id, epoch in json.loads(text)
    )
