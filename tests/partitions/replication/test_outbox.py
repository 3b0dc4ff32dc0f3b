"""Persist before you speak: what depends on the disk happens after it."""

from uuid import UUID

from tidemark.partitions.replication.outbox import NOTHING, GroupChange, Outbox
from tidemark.partitions.replication.peer_messages import Heartbeat
from tidemark.partitions.storage.journal.records import JournalRecord, forget
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

KEY = PartitionKey(UUID(int=7), 0)


def record(number: int) -> JournalRecord:
    return forget(PartitionKey(UUID(int=number), 0))


def test_what_waits_for_a_write_happens_when_it_is_persisted() -> None:
    outbox, done = Outbox(), list[str]()
    outbox.stage([record(1)], then=lambda: done.append("first"))
    write = outbox.take().write
    assert not done
    outbox.persisted(write)
    assert done == ["first"]


def test_a_batch_says_nothing_of_what_was_staged_after_it_was_taken() -> None:
    outbox, done = Outbox(), list[str]()
    outbox.stage([record(1)], then=lambda: done.append("first"))
    first = outbox.take()
    outbox.stage([record(2)], then=lambda: done.append("second"))
    second = outbox.take()
    outbox.persisted(first.write)
    assert done == ["first"]
    assert second.write > first.write
    assert second.records == [record(2)]


def test_a_later_batch_covers_the_earlier_ones_in_their_order() -> None:
    outbox, done = Outbox(), list[int]()
    for number in range(3):
        outbox.stage([record(number)], then=lambda number=number: done.append(number))  # type: ignore[misc]  # mypy has no type for a lambda's default
        write = outbox.take().write
    outbox.persisted(write)
    assert done == [0, 1, 2]


def test_waiting_for_a_batch_that_is_persisted_is_no_waiting() -> None:
    outbox, done = Outbox(), list[str]()
    write = outbox.stage([record(1)])
    outbox.wait_for(write, lambda: done.append("while it is collected"))
    outbox.take()
    outbox.wait_for(write, lambda: done.append("while it is written"))
    assert not done
    outbox.persisted(write)
    outbox.wait_for(write, lambda: done.append("after"))
    assert done == ["while it is collected", "while it is written", "after"]


def test_what_is_staged_by_what_waited_goes_into_the_next_batch() -> None:
    outbox = Outbox()

    def then() -> None:
        outbox.stage_record(record(2))

    outbox.stage([record(1)], then=then)
    outbox.persisted(outbox.take().write)
    assert outbox.take().records == [record(2)]


def test_messages_go_without_waiting_and_in_order() -> None:
    outbox = Outbox()
    beats = [Heartbeat(incarnation=1, sequence=n, acknowledges=0) for n in (1, 2)]
    for beat in beats:
        outbox.send(NodeId(2), beat)
    output = outbox.take()
    assert output.sends == {2: beats}
    assert output.write == 0


def test_the_changes_of_a_group_in_a_turn_are_one() -> None:
    outbox = Outbox()
    outbox.committed(KEY)
    outbox.serving(KEY)
    outbox.committed(KEY)
    assert outbox.take().changes == [GroupChange(KEY, committed=True, serving=True)]
    assert outbox.take() is NOTHING
