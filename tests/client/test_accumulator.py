"""A partition's queue, driven by answers; in the end by a model of the broker's sequence check, so
that whole histories of failures can be tried."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.sequence_model import SequenceModel
from tidemark.client.accumulator import BatchLimits, PartitionQueue, ProducerIdentity
from tidemark.client.batches import Batch, Failed, Stored
from tidemark.client.delivery import DeliveryFuture
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import check_batch, read_header
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import Offset

ME = ProducerIdentity(producer_id=9, epoch=0)
NEVER = 1e9


def new_queue(
    *, identity: ProducerIdentity | None = ME, batch_bytes: int = 100, in_flight_max: int = 5
) -> PartitionQueue:
    limits = BatchLimits(batch_bytes=batch_bytes, in_flight_max=in_flight_max)
    return PartitionQueue("t", 0, limits, identity)


def queue(*, batch_bytes: int = 100, in_flight_max: int = 5) -> PartitionQueue:
    """One whose producer the broker knows already: sequence 0 is stored."""
    q = new_queue(batch_bytes=batch_bytes, in_flight_max=in_flight_max)
    first = add(q, b"first")
    q.take()
    answer(q, first, ErrorCode.NONE)
    return q


def add(q: PartitionQueue, value: bytes, *, now: float = 0.0, size: int = 60) -> Batch:
    """A record; at this size, every record needs a batch of its own."""
    record = Record(Offset(0), 1, None, value)
    return q.try_add(record, size) or q.open(record, size, now)


def values(batch: Batch) -> list[bytes | None]:
    assert batch.data is not None
    return [record.value for record in decode_records(batch.data)]


def stamp(batch: Batch) -> tuple[int, int]:
    """The epoch and the first sequence it carries; it must be whole."""
    assert batch.data is not None
    header = check_batch(batch.data)
    assert header.producer_id == ME.producer_id
    return header.producer_epoch, header.base_sequence


def answer(q: PartitionQueue, batch: Batch, code: ErrorCode, *, offset: int = 0) -> None:
    q.answered(batch, code, base_offset=Offset(offset), retry_at=5.0)


def test_records_share_a_batch_until_it_is_full() -> None:
    q = queue(batch_bytes=100)
    assert q.try_add(Record(), 50) is None
    first = q.open(Record(), 50, 0.0)
    assert q.try_add(Record(), 50) is first
    assert q.try_add(Record(), 1) is None
    second = q.open(Record(), 1, 0.0)
    assert (first.count, second.count) == (2, 1)


def test_a_record_larger_than_a_batch_gets_one_for_itself() -> None:
    q = queue(batch_bytes=100)
    add(q, b"small", size=10)
    large = add(q, b"large", size=1000)
    add(q, b"small", size=10)
    assert [q.take().count for _ in range(3)] == [1, 1, 1]
    assert large.size_bytes == 1000


def test_an_open_batch_lingers_and_a_full_one_does_not() -> None:
    q = queue()
    assert q.due(2.0) is None
    add(q, b"a", now=10.0)
    assert q.due(2.0) == 12.0
    add(q, b"b", now=11.0)
    due = q.due(2.0)
    assert due is not None
    assert due < 10.0
    assert values(q.take()) == [b"a"]
    assert q.due(2.0) == 13.0


def test_sequences_count_records() -> None:
    q = queue(batch_bytes=1000)
    for _ in range(3):
        add(q, b"x")
    assert stamp(q.take()) == (0, 1)
    add(q, b"x")
    assert stamp(q.take()) == (0, 4)


def test_a_producer_that_is_not_idempotent_stamps_nothing() -> None:
    q = new_queue(identity=None)
    add(q, b"x")
    data = q.take().data
    assert data is not None
    assert read_header(data).producer_id == -1


def test_no_more_than_the_broker_remembers_are_in_flight() -> None:
    q = queue(in_flight_max=2)
    for value in (b"a", b"b", b"c"):
        add(q, value)
    first = q.take()
    q.take()
    assert q.due(0.0) is None
    answer(q, first, ErrorCode.NONE)
    assert q.due(0.0) is not None


def test_the_first_batch_goes_alone_because_a_broker_takes_any_sequence_for_the_first() -> None:
    q = new_queue()
    first, second = add(q, b"a"), add(q, b"b")
    q.take()
    assert q.due(0.0) is None
    answer(q, first, ErrorCode.NONE)
    assert q.due(0.0) is not None
    assert q.take() is second


def test_success_says_where_the_records_are() -> None:
    q = queue()
    batch = add(q, b"x")
    q.take()
    q.answered(batch, ErrorCode.NONE, base_offset=Offset(7), append_time_ms=99, retry_at=0.0)
    assert batch.outcome == Stored(Offset(7), 99)


def test_a_duplicate_is_a_success_whose_place_the_broker_has_forgotten() -> None:
    q = queue()
    batch = add(q, b"x")
    q.take()
    answer(q, batch, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert batch.outcome == Stored(Offset(-1))


def test_a_retry_waits_for_everything_in_flight_and_then_comes_first() -> None:
    q = queue()
    a, b, c = (add(q, value) for value in (b"a", b"b", b"c"))
    q.take(), q.take()
    answer(q, a, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert q.due(0.0) is None
    answer(q, b, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert q.due(0.0) == 5.0
    for sequence, batch in enumerate((a, b, c), start=1):
        assert q.take() is batch
        assert stamp(batch) == (0, sequence)
        assert q.due(0.0) is None or batch is c
        answer(q, batch, ErrorCode.NONE)


def test_a_lost_connection_leaves_the_sequences_as_they_are_for_the_broker_to_compare() -> None:
    q = queue()
    a, b = add(q, b"a"), add(q, b"b")
    q.take(), q.take()
    answer(q, a, ErrorCode.NETWORK_EXCEPTION)
    answer(q, b, ErrorCode.NETWORK_EXCEPTION)
    assert stamp(q.take()) == (0, 1)
    answer(q, a, ErrorCode.NONE)
    assert stamp(q.take()) == (0, 2)


def test_a_refused_batch_fails_alone_and_those_behind_it_go_on_in_a_new_epoch() -> None:
    q = queue()
    a, b = add(q, b"a"), add(q, b"b")
    q.take(), q.take()
    answer(q, a, ErrorCode.INVALID_RECORD)
    assert isinstance(a.outcome, Failed)
    assert a.outcome.error.code is ErrorCode.INVALID_RECORD
    answer(q, b, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert q.take() is b
    assert stamp(b) == (1, 0)


def test_a_batch_that_is_too_large_goes_in_halves_that_have_its_sequences() -> None:
    q = queue(batch_bytes=1000)
    for value in (b"a", b"b", b"c"):
        whole = add(q, value)
    q.take()
    answer(q, whole, ErrorCode.MESSAGE_TOO_LARGE)
    first = q.take()
    assert (values(first), stamp(first)) == ([b"a"], (0, 1))
    answer(q, first, ErrorCode.NONE, offset=10)
    second = q.take()
    assert (values(second), stamp(second)) == ([b"b", b"c"], (0, 2))
    assert whole.outcome is None
    answer(q, second, ErrorCode.NONE, offset=11)
    assert [DeliveryFuture(whole, at, 0).result().offset for at in range(3)] == [10, 11, 12]


def test_a_single_record_that_is_too_large_fails_and_its_neighbours_do_not() -> None:
    q = queue(batch_bytes=10_000)
    for value in (b"a", b"b", b"large", b"d"):
        whole = add(q, value)
    while (due := q.due(0.0)) is not None and due < NEVER:
        batch = q.take()
        is_large = b"large" in values(batch)
        code = ErrorCode.MESSAGE_TOO_LARGE if is_large else ErrorCode.NONE
        if stamp(batch)[0] == 0 and values(batch) == [b"d"] and not is_large:
            code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # behind the gap
        answer(q, batch, code, offset=7)
    futures = [DeliveryFuture(whole, at, 0) for at in range(4)]
    for future in (futures[0], futures[1], futures[3]):
        future.result()
    with pytest.raises(RequestError, match="MESSAGE_TOO_LARGE"):
        futures[2].result()


def test_a_ready_batch_is_not_taken_apart() -> None:
    q = queue()
    batch = q.add_ready(encode_batch([Record(value=b"b"), Record(value=b"c")]), 2, 0.0)
    q.take()
    answer(q, batch, ErrorCode.MESSAGE_TOO_LARGE)
    assert isinstance(batch.outcome, Failed)


def test_a_broker_that_has_forgotten_the_producer_gets_a_new_epoch() -> None:
    q = queue()
    a = add(q, b"a")
    q.take()
    answer(q, a, ErrorCode.NONE)
    b = add(q, b"b")
    q.take()
    answer(q, b, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert stamp(q.take()) == (1, 0)


def test_without_idempotence_a_sequence_error_is_final() -> None:
    q = new_queue(identity=None)
    batch = add(q, b"a")
    q.take()
    answer(q, batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert isinstance(batch.outcome, Failed)


def test_what_waits_too_long_has_the_words_of_the_last_answer() -> None:
    q = queue()
    batch = add(q, b"a", now=0.0)
    q.take()
    q.answered(batch, ErrorCode.KAFKA_STORAGE_ERROR, message="the disk is full", retry_at=5.0)
    assert q.expire(3.0, 120.0)
    assert isinstance(batch.outcome, Failed)
    assert str(batch.outcome.error).endswith("was KAFKA_STORAGE_ERROR: the disk is full")


def test_what_waits_too_long_expires_and_says_why_it_waited() -> None:
    q = queue()
    sent, waiting = add(q, b"a", now=0.0), add(q, b"b", now=5.0)
    q.take()
    answer(q, sent, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert q.expire(3.0, 120.0)
    assert isinstance(sent.outcome, Failed)
    assert sent.outcome.error.code is ErrorCode.REQUEST_TIMED_OUT
    assert "t-0: not stored within 120 s; the last answer was NOT_ENOUGH_REPLICAS" in str(
        sent.outcome.error
    )
    assert waiting.outcome is None
    # Whether the sequence that was given up is in the log, only the broker knows.
    assert q.take() is waiting
    assert stamp(waiting) == (0, 2)
    answer(q, waiting, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert q.take() is waiting
    assert stamp(waiting) == (1, 0)


@pytest.mark.parametrize(
    ("code", "size_bytes", "doubts"),
    [
        (ErrorCode.NETWORK_EXCEPTION, 101 << 20, True),
        (ErrorCode.NETWORK_EXCEPTION, 99 << 20, False),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 101 << 20, False),
    ],
)
def test_what_may_be_too_large_for_the_broker_says_so_when_it_expires(
    code: ErrorCode, size_bytes: int, doubts: bool
) -> None:
    q = queue()
    batch = add(q, b"a", now=0.0)
    q.take()
    batch.data = bytes(size_bytes)
    answer(q, batch, code)
    q.expire(3.0, 120.0)
    assert isinstance(batch.outcome, Failed)
    hint = f"its {size_bytes} bytes may be more than the broker takes in one request"
    assert (hint in str(batch.outcome.error)) == doubts


def test_what_expires_for_want_of_a_leader_says_so() -> None:
    q = queue()
    batch = add(q, b"a", now=0.0)
    assert q.expire(3.0, 120.0, is_led=False)
    assert isinstance(batch.outcome, Failed)
    assert "not stored within 120 s; the partition has no leader" in str(batch.outcome.error)


def test_what_may_be_stored_keeps_its_number_until_the_broker_has_refused_it() -> None:
    q = queue()
    a, b = add(q, b"a", now=0.0), add(q, b"b", now=5.0)
    q.take(), q.take()
    answer(q, a, ErrorCode.NETWORK_EXCEPTION)
    answer(q, b, ErrorCode.NETWORK_EXCEPTION)
    q.expire(3.0, 120.0)
    assert q.take() is b
    assert stamp(b) == (0, 2)
    answer(q, b, ErrorCode.NONE, offset=1)
    assert b.outcome == Stored(Offset(1))


def test_what_is_in_flight_does_not_expire() -> None:
    q = queue()
    batch = add(q, b"a")
    q.take()
    assert not q.expire(NEVER, 1.0)
    assert batch.outcome is None


def test_what_was_never_sent_leaves_no_gap_when_it_expires() -> None:
    q = queue()
    add(q, b"a")
    q.expire(NEVER, 1.0)
    add(q, b"b")
    assert stamp(q.take()) == (0, 1)


def test_a_ready_batch_goes_behind_what_is_there_and_is_stamped_like_any_other() -> None:
    q = queue(batch_bytes=1000)
    add(q, b"a")
    data = encode_batch([Record(value=b"b"), Record(value=b"c")])
    ready = q.add_ready(data, 2, 0.0)
    add(q, b"d")
    taken = [q.take() for _ in range(3)]
    assert [values(batch) for batch in taken] == [[b"a"], [b"b", b"c"], [b"d"]]
    assert taken[1] is ready
    assert [stamp(batch) for batch in taken] == [(0, 1), (0, 2), (0, 4)]


def test_a_sequence_goes_on_at_zero_after_the_largest() -> None:
    q = queue()
    q._next_sequence = 2**31 - 1
    add(q, b"a")
    add(q, b"b")
    assert [stamp(q.take()), stamp(q.take())] == [(0, 2**31 - 1), (0, 0)]


def test_a_producer_out_of_epochs_gives_up() -> None:
    q = new_queue(identity=ProducerIdentity(9, 2**15 - 1))
    batch = add(q, b"a")
    q.take()
    answer(q, batch, ErrorCode.UNKNOWN_PRODUCER_ID)
    assert isinstance(batch.outcome, Failed)
    assert batch.outcome.error.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_abandoned_batches_all_hear_of_it() -> None:
    q = queue()
    batches = [add(q, value) for value in (b"a", b"b", b"c")]
    heard: list[int] = []
    for index, batch in enumerate(batches):
        batch.when_settled.append(lambda index=index: heard.append(index))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    q.take()
    q.abandon(RequestError(ErrorCode.REQUEST_TIMED_OUT, "closed"))
    assert sorted(heard) == [0, 1, 2]
    assert q.due(0.0) is None


@settings(max_examples=100)
@given(seed=st.integers(0, 10**9), trouble=st.sampled_from([0.0, 0.2, 0.6]))
def test_whatever_fails_nothing_is_lost_doubled_or_out_of_order(seed: int, trouble: float) -> None:
    """Connections are lost before or after the append, leaders move, batches are refused or are
    too large. All in flight share a connection, so what is lost takes all sent after it along.
    """
    random = Random(seed)
    broker = SequenceModel(records_max=random.choice([1, 2, 3, 99]))
    q = new_queue(in_flight_max=random.randint(1, 5), batch_bytes=random.choice([60, 250]))
    futures = []
    for index in range(40):
        batch = add(q, b"%d" % index)
        futures.append(DeliveryFuture(batch, batch.count - 1, 0))
    in_flight: list[Batch] = []
    steps = 0
    while not all(future.is_done for future in futures):
        steps += 1
        assert steps < 10_000, "it does not come to an end"
        if q.due(0.0) is not None and random.random() < 0.6:
            in_flight.append(q.take())
            continue
        if not in_flight:
            continue
        batch = in_flight.pop(0)
        assert batch.data is not None
        if random.random() >= trouble:
            code, offset = broker.append(batch.data)
            answer(q, batch, code, offset=offset)
        elif random.random() < 0.2:
            answer(q, batch, ErrorCode.INVALID_RECORD)
        elif random.random() < 0.5:
            answer(q, batch, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            reached = [batch, *in_flight][: random.randint(0, 1 + len(in_flight))]
            for lost in reached:
                assert lost.data is not None
                broker.append(lost.data)
            for lost in [batch, *in_flight]:
                answer(q, lost, ErrorCode.NETWORK_EXCEPTION)
            in_flight.clear()
    stored: list[bytes | None] = []
    for index, future in enumerate(futures):
        try:
            offset = future.result().offset
        except RequestError:
            continue
        stored.append(b"%d" % index)
        assert broker.log[offset] == stored[-1]
    assert [value for value in broker.log if value in stored] == stored


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION])
def test_nothing_is_sent_again_before_its_time(code: ErrorCode) -> None:
    q = queue()
    batch = add(q, b"a")
    q.take()
    q.answered(batch, code, retry_at=42.0)
    assert q.due(0.0) == 42.0
