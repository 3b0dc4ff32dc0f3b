"""Heartbeats carry what is not confirmed: all of it, and nothing else."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.replication.heartbeats import Heartbeats
from tidemark.partitions.replication.peer_messages import GroupBeat, Heartbeat
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

A, B = NodeId(1), NodeId(2)
KEYS = [PartitionKey(UUID(int=n), 0) for n in range(4)]


def beat_of(key: PartitionKey) -> GroupBeat:
    return GroupBeat(key, Epoch(1), True, ORIGIN, Offset(0))


def answer(sequence: int, acknowledges: int) -> Heartbeat:
    """`acknowledges` counts the heartbeats of the first incarnation, from 1."""
    confirmed = acknowledges and (1 << 32) + acknowledges
    return Heartbeat(incarnation=1, sequence=sequence, acknowledges=confirmed)


def keys_in(heartbeat: Heartbeat) -> list[PartitionKey]:
    return [beat.key for beat in heartbeat.groups]


def test_news_are_repeated_until_they_are_confirmed() -> None:
    beats = Heartbeats(1, beat_of)
    beats.add_news(KEYS[0], [B])
    assert keys_in(beats.make(B, 0.0)) == [KEYS[0]]
    assert keys_in(beats.make(B, 0.0)) == [KEYS[0]]
    assert beats.take_in(B, answer(1, acknowledges=1)) is not None
    assert keys_in(beats.make(B, 0.0)) == []


def test_newer_news_of_the_same_group_are_not_confirmed_with_the_older() -> None:
    beats = Heartbeats(1, beat_of)
    for key in KEYS[:2]:
        beats.add_news(key, [B])
    first = beats.make(B, 0.0)
    beats.add_news(KEYS[0], [B])
    assert first.sequence == (1 << 32) + 1
    beats.take_in(B, answer(1, acknowledges=1))
    assert keys_in(beats.make(B, 0.0)) == [KEYS[0]]


def test_a_heartbeat_that_comes_late_is_dropped() -> None:
    beats = Heartbeats(1, beat_of)
    assert beats.take_in(B, answer(2, 0)) is not None
    assert beats.take_in(B, answer(1, 0)) is None
    assert beats.take_in(B, answer(2, 0)) is None


def test_a_late_confirmation_counts_after_many_heartbeats() -> None:
    beats = Heartbeats(1, beat_of)
    for n in range(1_000):
        beats.make(B, n * 0.01)
    found = beats.take_in(B, answer(1, acknowledges=600))
    assert found is not None
    assert 4.0 < found <= 5.99


def test_a_peer_with_much_to_read_hears_less_often() -> None:
    beats = Heartbeats(1, beat_of)
    for n in range(600):
        beats.add_news(PartitionKey(UUID(int=n), 0), [B])
    beats.make(B, 1.0)
    assert not beats.is_to_wait(B, 1.0, at_most_seconds=0.5)
    beats.make(B, 1.1)
    assert beats.is_to_wait(B, 1.2, at_most_seconds=0.5)
    assert not beats.is_to_wait(B, 1.6, at_most_seconds=0.5)
    beats.take_in(B, answer(1, acknowledges=1))
    assert not beats.is_to_wait(B, 1.2, at_most_seconds=0.5)


def test_each_side_confirms_what_it_took_in() -> None:
    beats = Heartbeats(1, beat_of)
    beats.take_in(B, answer(5, 0))
    assert beats.make(B, 0.0).acknowledges == 5


def test_a_new_process_has_confirmed_nothing() -> None:
    beats = Heartbeats(1, beat_of)
    beats.add_news(KEYS[0], [B])
    beats.make(B, 0.0)
    beats.restarted(B)
    beats.take_in(B, answer(1, acknowledges=0))
    assert keys_in(beats.make(B, 0.0)) == [KEYS[0]]


def test_only_news_that_no_heartbeat_has_carried_are_pressing() -> None:
    beats = Heartbeats(1, beat_of)
    assert not beats.has_unsent_news(B)
    beats.add_news(KEYS[0], [B])
    assert beats.has_unsent_news(B)
    beats.make(B, 0.0)
    assert not beats.has_unsent_news(B)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("news"), st.integers(0, 3)),
            st.tuples(st.just("beat"), st.sampled_from([0, 0, 1, 3])),
        ),
        max_size=40,
    )
)
def test_whatever_is_lost_or_late_the_peer_ends_with_the_newest(
    events: list[tuple[str, int]],
) -> None:
    """The value of a group is how often it had news; heartbeats may be lost (0), held back (3)."""
    values = dict.fromkeys(KEYS, 0)

    def beat(key: PartitionKey) -> GroupBeat:
        return beat_of(key)._replace(log_start=Offset(values[key]))

    ours, theirs = Heartbeats(1, beat), Heartbeats(1, beat_of)
    known: dict[PartitionKey, int] = {}
    held: list[Heartbeat] = []

    def deliver(heartbeat: Heartbeat) -> None:
        if theirs.take_in(A, heartbeat) is not None:
            known.update({each.key: each.log_start for each in heartbeat.groups})
        ours.take_in(B, theirs.make(A, 0.0))

    for kind, number in events:
        if kind == "news":
            values[KEYS[number]] += 1
            ours.add_news(KEYS[number], [B])
            continue
        heartbeat = ours.make(B, 0.0)
        if number == 3:
            held.append(heartbeat)
        elif number:
            deliver(heartbeat)
    for heartbeat in held:
        deliver(heartbeat)
    deliver(ours.make(B, 0.0))
    assert known == {key: value for key, value in values.items() if value}


def test_a_heartbeat_that_is_to_be_confirmed_soon_has_unsent_news_once() -> None:
    beats = Heartbeats(1, beat_of)
    beats.hurry(B)
    assert beats.is_hurried(B)
    beats.make(B, 0.0)
    assert not beats.is_hurried(B)


def test_a_confirmation_tells_when_what_it_confirms_was_sent() -> None:
    beats = Heartbeats(1, beat_of)
    for now in (1.0, 2.0, 3.0):
        beats.make(B, now)
    assert beats.take_in(B, answer(1, acknowledges=0)) == float("-inf")
    assert beats.take_in(B, answer(2, acknowledges=2)) == 2.0
    assert beats.take_in(B, answer(3, acknowledges=2)) == 2.0
    beats.restarted(B)
    assert beats.take_in(B, answer(1, acknowledges=0)) == float("-inf")


def test_what_was_confirmed_to_the_process_before_confirms_nothing() -> None:
    beats = Heartbeats(2, beat_of)
    beats.add_news(KEYS[0], [B])
    beats.make(B, 0.0)
    assert beats.take_in(B, answer(700, acknowledges=500)) == float("-inf")
    assert keys_in(beats.make(B, 0.0)) == [KEYS[0]]


def test_a_peer_that_left_and_came_back_does_not_take_new_heartbeats_for_late() -> None:
    beats = Heartbeats(1, beat_of)
    before = beats.make(B, 0.0).sequence
    beats.remove(B)
    assert beats.make(B, 0.0).sequence > before
