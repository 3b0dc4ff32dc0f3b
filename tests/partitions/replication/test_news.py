"""When heartbeats go out."""

from __future__ import annotations

from uuid import UUID

from tidemark.partitions.replication.news import News
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import GroupBeat, Heartbeat
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

ME, OTHER = NodeId(1), NodeId(2)
KEY = PartitionKey(UUID(int=7), 0)
TIMING = Timing(heartbeat_seconds=0.1, failure_timeout_seconds=2.0)
STEP_S = 0.01


class Teller:
    """One broker, another one that lives, and a clock."""

    def __init__(self) -> None:
        peers = PeerTable(ME, failure_timeout_seconds=TIMING.failure_timeout_seconds)
        peers.set_nodes([OTHER])
        self.outbox = Outbox()
        beat = GroupBeat(KEY, Epoch(1), True, ORIGIN, Offset(0))
        self.news = News(1, TIMING, peers, self.outbox, lambda _: beat, lambda _: [OTHER])
        self.now = 100.0
        peers.heard(OTHER, self.now)
        peers.confirmed(OTHER, self.now, self.now)

    def run(self, seconds: float) -> list[tuple[float, Heartbeat]]:
        """What goes out in that time, and when."""
        sent = []
        for _ in range(round(seconds / STEP_S)):
            self.now += STEP_S
            if self.news.next_deadline() <= self.now:
                self.news.tick(self.now)
            for message in self.outbox.take().sends.get(OTHER, ()):
                assert isinstance(message, Heartbeat)
                sent.append((self.now, message))
        return sent

    def hear(self, heartbeat: Heartbeat) -> None:
        self.news.take_in(OTHER, heartbeat, self.now)

    def answers(self) -> int:
        """How many go out at the end of this turn."""
        self.news.send_pressing(self.now)
        return len(self.outbox.take().sends.get(OTHER, ()))

    def wait_into(self, share: float) -> None:
        """Until so much of the interval is over since a heartbeat went out."""
        while not self.run(STEP_S):
            pass
        assert not self.run(share * TIMING.calm_heartbeat_seconds)


def said(*groups: GroupBeat, acknowledges: int = 0, sequence: int = 1) -> Heartbeat:
    return Heartbeat(
        incarnation=1, sequence=sequence, acknowledges=acknowledges, groups=tuple(groups)
    )


def test_where_nothing_is_new_eight_heartbeats_go_out_in_a_failure_timeout() -> None:
    teller = Teller()
    teller.run(1.0)
    assert 8 <= len(teller.run(2.0)) <= 9


def test_news_are_told_at_the_usual_interval_until_they_are_confirmed() -> None:
    teller = Teller()
    teller.run(1.03)  # It has just sent a heartbeat.
    teller.news.add(KEY, [OTHER])
    told = teller.run(1.0)
    assert told[0][0] - 101.03 <= TIMING.heartbeat_seconds + STEP_S
    assert 9 <= len(told) <= 11
    assert all(each.groups for _, each in told)
    teller.hear(said(acknowledges=told[-1][1].sequence))
    teller.run(0.2)
    assert 3 <= len(teller.run(1.0)) <= 4


def test_who_told_news_hears_within_the_usual_interval_that_they_were_read() -> None:
    teller = Teller()
    teller.run(1.03)
    teller.hear(said(GroupBeat(KEY, Epoch(1), True, ORIGIN, Offset(0))))
    (first, heartbeat), *_ = teller.run(0.3)
    assert heartbeat.acknowledges == 1
    assert first - 101.03 <= TIMING.heartbeat_seconds + STEP_S


def test_who_waits_for_what_others_have_read_asks_at_the_usual_interval() -> None:
    teller = Teller()
    teller.run(1.03)
    teller.news.hasten()
    assert teller.run(0.3)[0][0] - 101.03 <= TIMING.heartbeat_seconds + STEP_S


def test_the_interval_is_never_shorter_than_that_of_heartbeats_with_news() -> None:
    assert Timing(heartbeat_seconds=0.5, failure_timeout_seconds=2.0).calm_heartbeat_seconds == 0.5


def test_a_heartbeat_that_is_due_soon_goes_out_as_an_answer_to_another_brokers() -> None:
    teller = Teller()
    teller.run(1.0)
    teller.wait_into(0.6)
    teller.hear(said())
    assert teller.answers() == 1
    # And not at its own time, too.
    assert not teller.run(0.9 * TIMING.calm_heartbeat_seconds)


def test_one_that_went_out_a_moment_ago_is_no_answer_again() -> None:
    teller = Teller()
    teller.run(1.0)
    teller.wait_into(0.3)
    teller.hear(said())
    assert teller.answers() == 0


def test_what_is_overdue_is_no_answer_for_then_this_process_stood_still() -> None:
    teller = Teller()
    teller.run(1.0)
    teller.now += TIMING.failure_timeout_seconds
    teller.hear(said())
    assert teller.answers() == 0
    assert teller.news.late_seconds(teller.now) > TIMING.failure_timeout_seconds / 2
