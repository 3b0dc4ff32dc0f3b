"""Who leads, whom it gives the lead to, what it knows of producers, and where its log begins: each
promise fires when it is broken, and not before."""

from tests.testing.checkers.values import ANN, BEN, CAT, at, batch, breaks
from tidemark.partitions.state_machines.producer_entry import SEQUENCE_MASK, Producer
from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.testing.checkers import opening, producers, serving
from tidemark.testing.checkers.committed import CommittedLog
from tidemark.testing.checkers.elections import Elections


def test_a_log_that_has_lost_its_beginning() -> None:
    opening.keeps_its_beginning("g", ANN, Offset(3), Offset(5))
    opening.keeps_its_beginning("g", ANN, Offset(5), Offset(5))
    with breaks("a log keeps its beginning"):
        opening.keeps_its_beginning("g", ANN, Offset(6), Offset(5))


def test_who_asks_past_a_leader_that_does_not_want_it() -> None:
    elections = Elections("g")
    elections.leads(ANN, Epoch(1))
    elections.hands_over(BEN, Epoch(1))
    elections.asks_past_a_leader(ANN, Epoch(2))
    elections.asks_past_a_leader(BEN, Epoch(2))
    elections.leads(CAT, Epoch(2))
    with breaks("a live leader is followed only by whom it wants"):
        elections.asks_past_a_leader(BEN, Epoch(3))


def test_a_leader_that_waits_for_who_is_gone() -> None:
    serving.check_goes_on("g", ANN, BEN, None)
    serving.check_goes_on("g", ANN, BEN, CAT)
    with breaks("no hand-over waits for who is gone"):
        serving.check_goes_on("g", ANN, BEN, BEN)


def test_writes_that_are_held_though_it_is_known_who_leads() -> None:
    serving.check_tells_leader("g", ANN, None)
    with breaks("who waits is told who leads"):
        serving.check_tells_leader("g", ANN, BEN)


def known(next_sequence: int, *, epoch: int = 0) -> Producer:
    producer = Producer(epoch)
    producer.next_sequence = next_sequence
    return producer


def test_a_leader_that_knows_less_of_a_producer_than_its_log_has_had() -> None:
    newest = batch(10, 3, epoch=1, sequence=4)
    for fine in (known(7), known(20), known(0, epoch=1)):
        producers.check_known("g", ANN, newest, fine)
    for less in (None, known(6), known(0)):
        with breaks("a leader knows what producers have sent"):
            producers.check_known("g", ANN, newest, less)


def test_sequences_that_begin_anew_are_behind_the_last_one() -> None:
    newest = batch(10, 1, epoch=1, sequence=SEQUENCE_MASK)
    producers.check_known("g", ANN, newest, known(0))
    with breaks("a leader knows what producers have sent"):
        producers.check_known("g", ANN, newest, known(SEQUENCE_MASK))


def test_the_newest_batch_of_a_producer_is_the_one_that_lies_last() -> None:
    """Whoever is told of them: one that starts again goes through all of them once more."""
    log = CommittedLog("g")
    batches = [batch(0, 2, epoch=1, sequence=0), batch(2, 1, epoch=1, sequence=2)]
    for node in (ANN, BEN):
        log.advances(
            node, in_epoch=Epoch(1), committed=at(1, 3), starts=[at(1, 0)], batches=batches
        )
    assert log.newest == {ProducerId(7): batches[1]}
