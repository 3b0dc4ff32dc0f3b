"""Fetch sessions as values: a reader with one knows what a reader without one does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.replicas.fetch_sessions import (
    FIRST_EPOCH,
    IDLE_SECONDS,
    NO_SESSION,
    FetchSessions,
    everything,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

PARTITIONS = st.integers(0, 3)


@dataclass(slots=True)
class World:
    """What a broker would answer, partition by partition: an end, a start, perhaps an error."""

    ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    errors: dict[int, ErrorCode] = field(default_factory=dict)

    def answer(self, partition: int, offset: int) -> PartitionData:
        end, start = self.ends.get(partition, 0), self.starts.get(partition, 0)
        error = self.errors.get(partition, ErrorCode.NONE)
        if error is not ErrorCode.NONE:
            return PartitionData(partition_index=partition, error_code=error, high_watermark=-1)
        return PartitionData(
            partition_index=partition,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=start,
            records=b"r" * max(0, end - offset),
        )

    def full_answer(self, asked: Iterable[FetchTopic]) -> FetchResponse:
        answers = [
            self.answer(partition.partition, partition.fetch_offset)
            for _, _, partition in everything(asked)
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=answers)])


def asking(
    offsets: Mapping[int, int], *, number: int, epoch: int, forgotten: Iterable[int] = ()
) -> FetchRequest:
    partitions = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)
        for partition, offset in offsets.items()
    ]
    gone = list(forgotten)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=number,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=gone)] if gone else [],
    )


@dataclass(slots=True)
class Reader:
    """A consumer as Kafka's are: it says what has changed, and keeps what it was told."""

    sessions: FetchSessions
    world: World
    wanted: dict[int, int] = field(default_factory=dict)
    said: dict[int, int] = field(default_factory=dict)
    known: dict[int, PartitionData] = field(default_factory=dict)
    number: int = 0
    epoch: int = FIRST_EPOCH

    def fetch(self, now: float = 0.0) -> set[int]:
        """One fetch; the partitions that were in its answer."""
        if self.epoch == FIRST_EPOCH:
            self.said = {}
        changed = {
            each: offset for each, offset in self.wanted.items() if self.said.get(each) != offset
        }
        gone = [each for each in self.said if each not in self.wanted]
        request = asking(changed, number=self.number, epoch=self.epoch, forgotten=gone)
        session = self.sessions.enter(request, uses_ids=False, now=now)
        if session is None:
            full = self.world.full_answer(request.topics)
        else:
            asked = [each.asked[2] for each in session.remembered()]
            full = self.world.full_answer([FetchTopic(topic="t", partitions=asked)])
        response = self.sessions.answer(request, full, session, uses_ids=False, now=now)
        self.said = dict(self.wanted)
        self.number = response.session_id
        self.epoch = self.epoch + 1 if self.number else FIRST_EPOCH
        answers = {
            each.partition_index: each for topic in response.responses for each in topic.partitions
        }
        self.known.update(answers)
        return set(answers)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PARTITIONS, st.integers(1, 3)),
        st.tuples(st.just("trim"), PARTITIONS, st.just(0)),
        st.tuples(st.just("fail"), PARTITIONS, st.just(0)),
        st.tuples(st.just("mend"), PARTITIONS, st.just(0)),
        st.tuples(st.just("want"), PARTITIONS, st.integers(0, 3)),
        st.tuples(st.just("leave"), PARTITIONS, st.just(0)),
        st.tuples(st.just("read"), PARTITIONS, st.just(0)),
        st.tuples(st.just("fetch"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


def play(reader: Reader, step: str, partition: int, number: int) -> None:
    world = reader.world
    match step:
        case "append":
            world.ends[partition] = world.ends.get(partition, 0) + number
        case "trim":
            world.starts[partition] = world.ends.get(partition, 0)
        case "fail":
            world.errors[partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        case "mend":
            world.errors.pop(partition, None)
        case "want":
            reader.wanted[partition] = number
        case "leave":
            reader.wanted.pop(partition, None)
        case "read" if partition in reader.wanted:
            reader.wanted[partition] = world.ends.get(partition, 0)
        case "fetch":
            check(reader, reader.fetch())


def check(reader: Reader, answered: set[int]) -> None:
    """What the reader knows is what it would have been told without a session."""
    for partition, offset in reader.wanted.items():
        without = reader.world.answer(partition, offset)
        if partition in answered:
            assert reader.known[partition] == without
        else:
            assert not without.records
            assert without.error_code == ErrorCode.NONE
            known = reader.known[partition]
            assert (known.high_watermark, known.last_stable_offset, known.log_start_offset) == (
                without.high_watermark,
                without.last_stable_offset,
                without.log_start_offset,
            )


@given(steps=STEPS)
def test_the_answers_in_a_session_say_what_those_without_would(
    steps: list[tuple[str, int, int]],
) -> None:
    reader = Reader(FetchSessions(1, rng=Random(0)), World())
    for step in steps:
        play(reader, *step)
    check(reader, reader.fetch())
    assert reader.sessions.partitions == len(reader.wanted)


def opened(sessions: FetchSessions, partitions: int = 1, now: float = 0.0) -> Reader:
    reader = Reader(sessions, World(), wanted=dict.fromkeys(range(partitions), 0))
    reader.fetch(now)
    return reader


def refusal(sessions: FetchSessions, request: FetchRequest, *, uses_ids: bool = False) -> ErrorCode:
    with pytest.raises(RequestError) as refused:
        sessions.enter(request, uses_ids=uses_ids, now=0)
    return refused.value.code


def test_still_partitions_are_not_answered_again() -> None:
    reader = opened(FetchSessions(1), partitions=3)
    reader.world.ends[1] = 5
    assert reader.fetch() == {1}
    reader.wanted[1] = 5
    assert reader.fetch() == set()


def test_records_are_said_though_the_ends_have_not_moved() -> None:
    reader = opened(FetchSessions(1))
    reader.world.ends[0] = 5
    assert reader.fetch() == {0}
    reader.wanted[0] = 2
    assert reader.fetch() == {0}


def test_that_an_error_is_over_is_said() -> None:
    reader = opened(FetchSessions(1))
    reader.world.errors[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert reader.fetch() == reader.fetch() == {0}
    del reader.world.errors[0]
    assert reader.fetch() == {0}
    assert reader.fetch() == set()


def test_what_is_forgotten_is_not_answered_any_more() -> None:
    reader = opened(FetchSessions(1), partitions=2)
    del reader.wanted[1]
    reader.world.ends |= {0: 5, 1: 5}
    assert reader.fetch() == {0}


def test_a_session_that_was_never_given_is_not_found() -> None:
    code = refusal(FetchSessions(1), asking({0: 0}, number=7, epoch=1))
    assert code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_request_out_of_step_is_refused() -> None:
    sessions = FetchSessions(1)
    number = opened(sessions).number
    for epoch in (2, 100):
        code = refusal(sessions, asking({}, number=number, epoch=epoch))
        assert code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_does_not_change_between_names_and_ids() -> None:
    sessions = FetchSessions(1)
    number = opened(sessions).number
    code = refusal(sessions, asking({}, number=number, epoch=1), uses_ids=True)
    assert code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_with_ids_topics_are_told_apart_by_their_ids() -> None:
    sessions = FetchSessions(1)
    ids = UUID(int=1), UUID(int=2)
    asked = [
        FetchTopic(
            topic_id=each,
            partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)],
        )
        for each in ids
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=FIRST_EPOCH, topics=asked)
    response = sessions.answer(request, FetchResponse(responses=[]), None, uses_ids=True, now=0)
    follow = asking({}, number=response.session_id, epoch=1)
    session = sessions.enter(follow, uses_ids=True, now=0)
    assert session is not None
    assert [each.asked[1] for each in session.remembered()] == list(ids)


def test_a_closed_session_is_forgotten() -> None:
    sessions = FetchSessions(1)
    number = opened(sessions).number
    assert (
        sessions.enter(asking({}, number=number, epoch=NO_SESSION), uses_ids=False, now=0) is None
    )
    assert (len(sessions), sessions.partitions) == (0, 0)


def test_a_session_that_reads_nothing_any_more_ends() -> None:
    reader = opened(FetchSessions(1))
    reader.wanted.clear()
    reader.fetch()
    assert (reader.number, len(reader.sessions)) == (0, 0)


def test_without_a_free_slot_a_reader_gets_no_session_and_no_less_to_read() -> None:
    sessions = FetchSessions(1)
    opened(sessions)
    second = opened(sessions, partitions=2)
    assert second.number == 0
    assert second.fetch() == {0, 1}


def test_none_at_all_can_be_had_with_no_slots() -> None:
    assert opened(FetchSessions(0)).number == 0


def test_one_that_has_been_silent_for_long_makes_room() -> None:
    sessions = FetchSessions(1)
    first = opened(sessions, partitions=3)
    second = opened(sessions, now=IDLE_SECONDS + 1)
    assert second.number != 0
    assert sessions.evicted == 1
    with pytest.raises(RequestError):
        first.fetch()


def test_one_that_is_old_makes_room_for_a_larger_one_and_no_other() -> None:
    sessions = FetchSessions(1)
    first = opened(sessions, partitions=2)
    first.fetch(IDLE_SECONDS)  # not silent
    assert opened(sessions, partitions=2, now=IDLE_SECONDS + 1).number == 0
    assert opened(sessions, partitions=3, now=IDLE_SECONDS + 3).number != 0


def test_what_all_sessions_remember_is_bounded() -> None:
    sessions = FetchSessions(10, partitions_max=4)
    first = opened(sessions, partitions=3)
    assert opened(sessions, partitions=2).number == 0
    first.wanted |= dict.fromkeys(range(5), 0)
    assert first.fetch() == {3, 4}
    assert (first.number, sessions.partitions) == (0, 0)


def test_a_name_that_no_topic_can_have_is_not_remembered() -> None:
    sessions = FetchSessions(10)
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)]
    long = [FetchTopic(topic="t" * 250, partitions=partitions)]
    opening = replace(asking({0: 0}, number=0, epoch=FIRST_EPOCH), topics=long)
    nothing = FetchResponse(responses=[])
    answer = sessions.answer(opening, nothing, None, uses_ids=False, now=0)
    assert (answer.session_id, len(sessions), sessions.partitions) == (0, 0, 0)
    known = asking({0: 0}, number=0, epoch=FIRST_EPOCH)
    number = sessions.answer(known, nothing, None, uses_ids=False, now=0).session_id
    assert number
    with pytest.raises(RequestError) as refused:
        sessions.enter(
            replace(asking({}, number=number, epoch=1), topics=long), uses_ids=False, now=0
        )
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partitions) == (0, 0)
