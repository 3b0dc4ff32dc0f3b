"""A group becomes one of the classic protocol again once the last other member has left."""

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    group_of,
    topics,
)
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    Coordinator,
)
from tests.partitions.state_machines.groups.migration_steps import (
    BOTH,
    NONE,
    commits,
    hold_the_change,
    kind,
    reasons,
    shared,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


@BOTH
def test_the_group_is_a_classic_one_again_when_the_last_of_the_other_protocol_has_left(
    groups: Coordinator, assignor: str
) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two", assignor=assignor)
    three = ClassicMember(groups, "three", assignor=assignor)
    shared(one, two, three)
    epoch = group_of(groups).epoch
    one.leave()
    for _ in range(12):
        for each in (two, three):
            each.turn()
            assert each.error in (NONE, ErrorCode.REBALANCE_IN_PROGRESS), "nothing is lost"
            assert not each.owned or commits(groups, each, is_old=False), "no commit is refused"
        assert two.owned.isdisjoint(three.owned)
    assert kind(groups) == ("classic", "Stable")
    assert two.generation == three.generation > epoch
    shared(two, three)
    assert "the last member of the consumer protocol has left" in reasons(groups)
    last = dict(groups.log)
    left = [key for key, value in last.items() if value is not None]
    assert [key for key in left if not hasattr(key, "partition")] == [GroupMetadataKey(group=GROUP)]


@BOTH
def test_a_rolling_restart_goes_up_and_back(groups: Coordinator, assignor: str) -> None:
    members: list[Member | ClassicMember] = [
        ClassicMember(groups, f"old {n}", assignor=assignor) for n in range(3)
    ]
    shared(*members)
    for is_up in (True, False):
        for n in range(3):
            members[n].leave()
            name = f"{is_up} {n}"
            members[n] = (
                Member(groups, name) if is_up else ClassicMember(groups, name, assignor=assignor)
            )
            shared(*members)
        assert kind(groups) == ("consumer" if is_up else "classic", "Stable")


def test_who_comes_while_the_group_is_written_as_a_classic_one_keeps_it_as_it_is(
    groups: Coordinator,
) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two")
    shared(one, two)
    one.leave()
    hold_the_change(groups, two)
    three = Member(groups, "three")
    joined = three.send()
    groups.holds_writes = False
    groups.store_all()
    assert three.take(joined) is NONE
    assert kind(groups)[0] == "consumer"
    assert dict(groups.log)[GroupMetadataKey(group=GROUP)] is None
    groups.restart()
    shared(two, three)
