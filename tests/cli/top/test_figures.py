"""What two looks at a cluster come to, and how it is drawn."""

from collections.abc import Mapping
from io import StringIO
from math import inf
from uuid import UUID

import pytest
from rich.cells import cell_len
from rich.console import Console

from tidemark.cli.health import ClusterFacts
from tidemark.cli.top.figures import Figures
from tidemark.cli.top.screen import Screen, lasting, sparkline
from tidemark.cli.top.sight import Sight
from tidemark.client import (
    BrokerDescription,
    ClusterDescription,
    GroupListing,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Epoch, NodeId, Offset

ONE, TWO = NodeId(1), NodeId(2)


def partition(index: int, leader: NodeId | None = ONE) -> PartitionDescription:
    return PartitionDescription(
        partition=index,
        leader=leader,
        leader_epoch=Epoch(0),
        replicas=(ONE, TWO),
        in_sync=(ONE, TWO),
        offline=(),
        error=ErrorCode.NONE,
    )


def topic(name: str, *partitions: PartitionDescription) -> TopicDescription:
    return TopicDescription(
        name=name, topic_id=UUID(int=1), is_internal=False, partitions=partitions
    )


HEADINGS = {
    *("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "LAG", "IN/S", "OUT/S"),
    *("TOPIC", "PARTITIONS", "RECORDS/S", "TROUBLE", "GROUP", "READS/S", "CAUGHT-UP-IN"),
}
TOPICS = (topic("idle", partition(0)), topic("rides", partition(0), partition(1)))


def sight(
    at: float,
    ends: Mapping[tuple[str, int], int],
    committed: Mapping[str, Mapping[tuple[str, int], int]] | None = None,
    topics: tuple[TopicDescription, ...] = TOPICS,
) -> Sight:
    """At this second, partitions end here and groups have read so far."""

    def placed(offsets: Mapping[tuple[str, int], int]) -> dict[TopicPartition, Offset]:
        return {TopicPartition(*where): Offset(offset) for where, offset in offsets.items()}

    groups = committed or {}
    return Sight(
        at=at,
        facts=ClusterFacts(
            description=ClusterDescription(
                cluster_id="c",
                controller_id=ONE,
                brokers=(
                    BrokerDescription(node_id=ONE, host="a", port=1, rack=None),
                    BrokerDescription(node_id=TWO, host="b", port=2, rack="r"),
                ),
            ),
            topics=topics,
            groups=[
                GroupListing(group=name, protocol_type="consumer", state="Stable", coordinator=ONE)
                for name in groups
            ],
        ),
        ends=placed(ends),
        committed={name: placed(offsets) for name, offsets in groups.items()},
    )


def test_a_rate_is_what_was_appended_in_the_time_between() -> None:
    before = sight(10.0, {("rides", 0): 100, ("rides", 1): 0, ("idle", 0): 5})
    now = sight(12.0, {("rides", 0): 300, ("rides", 1): 100, ("idle", 0): 5})
    figures = Figures(before, now)
    assert figures.per_second == 150
    rides, idle = figures.topics()
    assert (rides.name, rides.partitions, rides.per_second) == ("rides", 2, 150)
    assert (idle.name, idle.per_second) == ("idle", 0)


def test_one_look_alone_and_a_partition_made_anew_have_no_rate() -> None:
    assert Figures(None, sight(1.0, {("rides", 0): 100})).per_second == 0
    before, now = sight(1.0, {("rides", 0): 100}), sight(2.0, {("rides", 0): 7, ("rides", 1): 9})
    assert Figures(before, now).per_second == 0


def test_what_is_in_trouble_comes_first() -> None:
    topics = (topic("busy", partition(0)), topic("lost", partition(0, leader=None)))
    before = sight(0.0, {("busy", 0): 0}, topics=topics)
    now = sight(1.0, {("busy", 0): 9}, topics=topics)
    assert [(each.name, each.trouble) for each in Figures(before, now).topics()] == [
        ("lost", "no leader"),
        ("busy", None),
    ]


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        (0, 300, 3.5),  # 700 to go, and 200 fewer each second
        (0, 100, inf),  # as many as come
        (0, 0, inf),
        (500, 1000, None),
    ],
)
def test_when_a_group_has_caught_up_where_100_records_come_a_second(
    before: int, now: int, left: float | None
) -> None:
    looks = (
        sight(0.0, {("rides", 0): 900}, {"g": {("rides", 0): before}}),
        sight(1.0, {("rides", 0): 1000}, {"g": {("rides", 0): now}}),
    )
    (group,) = Figures(*looks).groups()
    assert group.lag == 1000 - now
    assert group.per_second == now - before
    assert group.left_seconds == left


def test_the_group_furthest_behind_comes_first_and_what_has_committed_nothing_last() -> None:
    ends = {("rides", 0): 100}
    committed = {"a": {("rides", 0): 90}, "b": {("rides", 0): 10}, "c": {("gone", 0): 1}}
    groups = Figures(None, sight(0.0, ends, committed)).groups()
    assert [(each.name, each.lag) for each in groups] == [("b", 90), ("a", 10), ("c", None)]


def drawn(figures: Figures, *, width: int = 120, height: int | None = None) -> str:
    console, screen = Console(file=StringIO(), width=width), Screen()
    for _ in range(70):
        frame = screen.frame(figures, width=width, height=height)
    with console.capture() as captured:
        console.print(frame)
    return captured.get()


def test_a_frame_shows_all_and_no_more_lines_than_there_are() -> None:
    topics = tuple(topic(f"topic-{number:02}", partition(0)) for number in range(30))
    committed = {f"group-{number:02}": {("topic-00", 0): number} for number in range(30)}
    whole = Figures(None, sight(0.0, {("topic-00", 0): 50}, committed, topics))
    everything = drawn(whole)
    assert "topic-29" in everything
    assert "group-29" in everything
    assert "never" in everything
    frame = drawn(whole, height=30)
    assert len(frame.splitlines()) <= 30
    assert "more" in frame
    assert "healthy" in frame


@pytest.mark.parametrize(
    ("width", "shown", "left_out"),
    [
        (80, ("ADDRESS", "RACK", "PARTITIONS", "READS/S"), ()),
        (65, ("ADDRESS", "REPLICAS", "PARTITIONS", "READS/S"), ("RACK",)),
        (57, ("REPLICAS", "PARTITIONS", "READS/S"), ("RACK", "ADDRESS")),
        (40, ("BROKER", "STATE", "LAG", "CAUGHT-UP-IN"), ("RACK", "ADDRESS", "READS/S")),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_no_heading_is_cut(
    width: int, shown: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    long = "the-longest-name-that-anybody-has-given-to-a-topic-of-this-cluster"
    topics = tuple(topic(f"{number}-{long}", partition(0)) for number in range(30))
    ends = {(f"0-{long}", 0): 50}
    committed = {f"{number}-{long}": {(f"0-{long}", 0): number} for number in range(30)}
    frame = drawn(Figures(None, sight(0.0, ends, committed, topics)), width=width, height=30)
    lines = frame.splitlines()
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= width
    headings = {word for line in lines if line.strip().isupper() for word in line.split()}
    assert headings <= HEADINGS, "whole ones"
    assert headings >= {"TOPIC", "GROUP", *shown}
    assert not headings.intersection(left_out)
    assert "0-the-longest" in frame


def test_why_there_is_no_newer_look_is_said() -> None:
    figures = Figures(None, sight(0.0, {}), trouble="nobody answers for 10 s")
    assert "nobody answers for 10 s" in drawn(figures)


def test_a_name_cannot_draw_on_the_terminal() -> None:
    topics = (topic("x\x1b[2J[red]y", partition(0)),)
    assert r"x\x1b[2J[red]y" in drawn(Figures(None, sight(0.0, {}, topics=topics)))


def test_bars_and_durations() -> None:
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([]) == ""
    assert [lasting(each) for each in (None, 0.4, 100, 120, 7200, 200_000, inf)] == [
        "-",
        "0 s",
        "100 s",
        "2 min",
        "2 h",
        "2 d",
        "never",
    ]
