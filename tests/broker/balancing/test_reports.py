"""What leaders tell the leader of the metadata, and how long it is believed."""

from dataclasses import replace
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tidemark.broker.balancing.history import History
from tidemark.broker.balancing.own_loads import rounded
from tidemark.broker.balancing.reports import (
    GROUPS_MAX,
    QUIET_SECONDS,
    REPORT_SECONDS,
    DiskState,
    Reporter,
    Reports,
    is_news,
)
from tidemark.broker.balancing.traffic import SMOOTH_SECONDS, Smoothed
from tidemark.partitions.state_machines.cluster_values import PartitionId
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.load_report import (
    GroupLoad,
    LoadReportRequest,
    LoadReportResponse,
    VoterLag,
)
from tidemark.protocol.types import Epoch, NodeId

TOPIC = UUID(int=7)
ONE, TWO = NodeId(1), NodeId(2)


def load(partition: int = 0, *, epoch: int = 3, size: int = 0, taken: int = 0) -> GroupLoad:
    return GroupLoad(
        topic_id=TOPIC,
        partition=partition,
        epoch=epoch,
        size_bytes=size,
        bytes_in_per_second=taken,
        bytes_out_per_second=0,
        is_changing=False,
        voters=(VoterLag(node_id=1, lag=0), VoterLag(node_id=2, lag=0)),
        learners=(),
    )


def report(*loads: GroupLoad, epoch: int = 5, begins: bool = False) -> LoadReportRequest:
    return LoadReportRequest(epoch=epoch, begins=begins, is_full=False, groups=loads)


class Told:
    """One broker that leads the metadata, or another one, and those who report."""

    def __init__(self) -> None:
        self.leader: tuple[NodeId | None, Epoch] = (TWO, Epoch(5))
        self.loads: list[GroupLoad] = []
        self.reports: list[LoadReportRequest] = []
        self.is_deaf = False
        self.looks = 0
        self.code = ErrorCode.NONE
        self.is_full = False
        self.reporter = Reporter(
            lambda: self.leader, self.look, self.tell, is_full=lambda: self.is_full
        )

    async def look(self) -> list[GroupLoad]:
        self.looks += 1
        return self.loads

    async def tell(self, _: NodeId, request: LoadReportRequest) -> LoadReportResponse:
        self.reports.append(request)
        if self.is_deaf:
            raise RequestError(ErrorCode.NETWORK_EXCEPTION)
        return LoadReportResponse(error_code=self.code)

    async def tell_once(self) -> list[tuple[bool, list[int]]]:
        self.reports.clear()
        await self.reporter.report()
        return [(each.begins, [one.partition for one in each.groups]) for each in self.reports]


async def test_only_what_has_changed_is_told() -> None:
    told = Told()
    told.loads = [load(0), load(1)]
    assert await told.tell_once() == [(True, [0, 1])]
    assert await told.tell_once() == []
    told.loads = [load(0), load(1, epoch=4)]
    assert await told.tell_once() == [(False, [1])]


async def test_another_leader_is_told_everything() -> None:
    told = Told()
    told.loads = [load(0)]
    await told.tell_once()
    told.leader = (TWO, Epoch(6))
    assert await told.tell_once() == [(True, [0])]
    told.leader = (None, Epoch(6))
    assert await told.tell_once() == []


async def test_that_the_disk_has_filled_up_is_told_though_nothing_else_has_changed() -> None:
    told = Told()
    told.loads = [load(0)]
    await told.tell_once()
    reports = Reports(lambda: Epoch(5), lambda: 7)
    for is_full in (True, False):
        told.is_full = is_full
        assert await told.tell_once() == [(False, [])]
        reports.take(ONE, told.reports[0])
        assert reports.disk(ONE) == DiskState(is_full, 7)
        assert await told.tell_once() == []
    told.is_full, told.is_deaf = True, True
    await told.tell_once()
    told.is_deaf = False
    assert await told.tell_once() == [(True, [0])], "it may not have come"
    assert told.reports[0].is_full


def test_who_was_full_in_an_earlier_epoch_says_so_again() -> None:
    epoch = Epoch(5)
    reports = Reports(lambda: epoch, lambda: 7)
    reports.take(ONE, replace(report(), is_full=True))
    epoch = Epoch(6)
    reports.take_told()
    assert reports.disk(ONE) is None
    reports.take(ONE, replace(report(epoch=6), is_full=True))
    assert reports.disk(ONE) == DiskState(is_full=True, since_ms=7)


@pytest.mark.parametrize("how", ["lost", "refused"])
async def test_after_a_report_that_may_not_have_come_everything_is_told_anew(how: str) -> None:
    told = Told()
    told.loads = [load(0)]
    await told.tell_once()
    told.is_deaf, told.code = how == "lost", ErrorCode.NOT_CONTROLLER
    told.loads = [load(0), load(1)]
    assert await told.tell_once() == [(False, [1])]
    told.is_deaf, told.code = False, ErrorCode.NONE
    assert await told.tell_once() == [(True, [0, 1])]


async def test_what_is_not_led_here_any_more_is_forgotten_and_told_again_if_it_comes_back() -> None:
    told = Told()
    told.loads = [load(0), load(1)]
    await told.tell_once()
    told.loads = [load(0)]
    assert await told.tell_once() == []
    assert [key.partition for key in told.reporter._told] == [0]
    told.loads = [load(0), load(1)]
    assert await told.tell_once() == [(False, [1])]


async def test_a_report_has_some_hundreds_at_most() -> None:
    told = Told()
    told.loads = [load(partition) for partition in range(GROUPS_MAX + 1)]
    assert [(begins, len(some)) for begins, some in await told.tell_once()] == [
        (True, GROUPS_MAX),
        (False, 1),
    ]


def test_a_little_more_or_less_is_no_news() -> None:
    before = load(size=10_000_000, taken=100_000)
    assert is_news(None, before)
    assert not is_news(before, before)
    assert not is_news(before, load(size=10_900_000, taken=101_000))
    assert is_news(before, load(size=10_000_000, taken=103_000))
    assert is_news(before, load(size=12_000_000, taken=100_000))
    assert is_news(before, load(size=10_000_000, taken=0))
    assert is_news(load(taken=0), load(taken=1))
    behind = (VoterLag(node_id=1, lag=0), VoterLag(node_id=2, lag=-1))
    assert is_news(before, replace(before, voters=behind))
    assert is_news(before, replace(before, learners=(3,)))
    assert is_news(before, replace(before, is_changing=True))
    assert is_news(before, replace(before, epoch=4))
    assert not is_news(before, replace(before))


def test_lags_are_rounded_up() -> None:
    assert [rounded(lag) for lag in (0, 63, 64, 65, 100, 128, 129)] == [
        0,
        0,
        64,
        128,
        128,
        128,
        256,
    ]


# The other side


def test_only_what_the_leader_says_of_its_epoch_counts() -> None:
    reports = Reports(lambda: Epoch(5), lambda: 7)
    assert reports.take(ONE, report(load(epoch=3))).error_code == ErrorCode.NONE
    key = PartitionKey(TOPIC, 0)
    assert reports.load(key, ONE, Epoch(3)) is not None
    assert reports.load(key, ONE, Epoch(4)) is None, "it has led again since"
    assert reports.load(key, TWO, Epoch(3)) is None, "another one leads"


def test_who_does_not_lead_the_metadata_takes_no_reports() -> None:
    leading: list[Epoch | None] = [None]
    reports = Reports(lambda: leading[0], lambda: 7)
    assert reports.take(ONE, report(load())).error_code == ErrorCode.NOT_CONTROLLER
    leading[0] = Epoch(6)
    assert reports.take(ONE, report(load())).error_code == ErrorCode.NOT_CONTROLLER
    assert reports.take(ONE, report(load(), epoch=6)).error_code == ErrorCode.NONE


def test_what_was_told_in_an_earlier_lead_is_forgotten() -> None:
    leading: list[Epoch | None] = [Epoch(5)]
    reports = Reports(lambda: leading[0], lambda: 7)
    reports.take(ONE, report(load(0)))
    leading[0] = Epoch(7)
    reports.take(TWO, report(load(1), epoch=7))
    assert reports.load(PartitionKey(TOPIC, 0), ONE, Epoch(3)) is None
    assert reports.load(PartitionKey(TOPIC, 1), TWO, Epoch(3)) is not None


def test_a_first_report_replaces_what_was_told_before() -> None:
    reports = Reports(lambda: Epoch(5), lambda: 7)
    reports.take(ONE, report(load(0), load(1)))
    reports.take(ONE, report(load(1), begins=True))
    assert reports.load(PartitionKey(TOPIC, 0), ONE, Epoch(3)) is None
    assert reports.load(PartitionKey(TOPIC, 1), ONE, Epoch(3)) is not None


def test_deleted_topics_are_forgotten() -> None:
    reports = Reports(lambda: Epoch(5), lambda: 7)
    reports.take(ONE, report(load(0), load(1)))
    reports.forget_topics({UUID(int=1 + TOPIC.int)})
    assert reports.load(PartitionKey(TOPIC, 0), ONE, Epoch(3)) is not None
    reports.forget_topics({TOPIC})
    assert reports.load(PartitionKey(TOPIC, 0), ONE, Epoch(3)) is None


def test_what_is_told_of_topics_after_they_were_deleted_is_forgotten_in_time() -> None:
    reports = Reports(lambda: Epoch(5), lambda: 7)
    for number in range(1_000):
        reports.take(ONE, report(replace(load(), topic_id=UUID(int=number))))
        reports.forget_gone({TOPIC}.__contains__)
    kept = [PartitionKey(UUID(int=number), 0) for number in range(1_000)]
    kept = [key for key in kept if reports.load(key, ONE, Epoch(3)) is not None]
    assert PartitionKey(TOPIC, 0) in kept
    assert len(kept) < 100


def test_what_was_told_or_forgotten_is_news_once() -> None:
    leading: list[Epoch | None] = [Epoch(5)]
    reports = Reports(lambda: leading[0], lambda: 7)
    first, second = (PartitionKey(TOPIC, number) for number in range(2))
    reports.take(ONE, report(load(0), load(1)))
    assert reports.take_told() == {first, second}
    reports.take(ONE, report(load(1)))
    assert reports.take_told() == {second}
    assert not reports.take_told()
    reports.take(ONE, report(load(1), begins=True))
    assert reports.take_told() == {first, second}
    leading[0] = Epoch(7)
    assert reports.take_told() == {second}


# Rates


def test_a_steady_rate_is_that_rate_from_the_second_sample_on() -> None:
    rate = Smoothed(1000, 0.0)
    assert rate.per_second == 0
    for second in range(1, 50):
        rate.sample(1000 + 70 * second, float(second))
        assert rate.per_second == pytest.approx(70)


def test_a_burst_fades_and_a_counter_that_goes_back_stands_still() -> None:
    rate = Smoothed(0, 0.0)
    for second in range(1, 101):
        rate.sample(0, float(second))
    rate.sample(30_000, 101.0)
    assert 500 < rate.per_second < 1500
    rate.sample(0, 101.0 + 3 * SMOOTH_SECONDS)
    assert 0 < rate.per_second < 100


# What has happened


def test_a_broker_is_up_since_it_came_back_or_was_replaced() -> None:
    history = History()
    for at, is_alive, incarnation, since in (
        (10, True, 1, 10),
        (20, True, 1, 10),
        (30, False, 1, None),
        (40, True, 1, 40),
        (50, True, 2, 50),
    ):
        history.saw_broker(ONE, is_alive=is_alive, incarnation=incarnation, now_ms=at)
        assert history.up_since_ms(ONE) == since
    history.forget_brokers([])
    assert history.up_since_ms(ONE) is None


def test_a_leader_that_changed_was_moved_then_and_a_first_sight_is_no_change() -> None:
    history, partition = History(), PartitionId(TOPIC, 0)
    for at, leader, moved in ((10, ONE, None), (20, None, None), (30, ONE, None), (40, TWO, 40)):
        history.saw_leader(partition, leader, at)
        assert history.moved_ms(partition) == moved
    history.stop_watching()
    history.saw_leader(partition, ONE, 50)
    assert history.moved_ms(partition) == 40
    history.move_ended(partition, 60)
    assert history.moved_ms(partition) == 60
    history.forget_topics({partition.topic_id})
    assert history.moved_ms(partition) is None


async def test_where_there_is_nothing_to_tell_it_looks_less_often(
    autojump_clock: MockClock,
) -> None:
    told = Told()
    told.loads = [load(0)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(told.reporter.run)
        await trio.sleep(10)
        told.looks = 0
        await trio.sleep(40)
        assert told.looks <= 11
        told.reports.clear()
        told.loads = [load(0, size=1 << 30)]
        await trio.sleep(QUIET_SECONDS + 0.2)
        assert len(told.reports) == 1
        for size in range(1, 21):
            told.loads = [load(0, size=size << 31)]
            await trio.sleep(REPORT_SECONDS / 2)
        assert len(told.reports) >= 7
        nursery.cancel_scope.cancel()
