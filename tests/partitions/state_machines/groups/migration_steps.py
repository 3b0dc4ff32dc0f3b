"""What tests of groups that change their protocol do and look at."""

from collections.abc import Sequence

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    COOPERATIVE,
    EAGER,
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    parts,
)
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.requests import Commit, OffsetToCommit
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey
from tidemark.protocol.types import TopicPartition

NONE = ErrorCode.NONE
ALL = parts("orders", 0, 1, 2, 3)
BOTH = pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])


def kind(groups: Coordinator) -> tuple[str, str]:
    (listed,) = groups.shard.list_groups()
    return listed.kind, listed.state


def go_on(*members: Member | ClassicMember, rounds: int = 12) -> None:
    """All do what clients do, until nothing changes any more; nobody ever reads another's."""
    for _ in range(rounds):
        for member in members:
            member.turn() if isinstance(member, ClassicMember) else member.beat()
            read = [partition for each in members for partition in each.owned]
            assert len(read) == len(set(read)), "one reader at a time"


def shared(*members: Member | ClassicMember) -> None:
    go_on(*members)
    assert frozenset[object]().union(*(each.owned for each in members)) == ALL
    loads = [len(each.owned) for each in members]
    assert max(loads) - min(loads) <= 1


def commits(groups: Coordinator, member: Member | ClassicMember, *, is_old: bool = True) -> bool:
    """Whether the member may commit in the epoch that it knows; `is_old`: by an old version."""
    is_classic = isinstance(member, ClassicMember)
    generation = member.generation if isinstance(member, ClassicMember) else member.epoch
    request = Commit(
        group_id=GROUP,
        generation=generation,
        member_id=member.id,
        offsets={TopicPartition("orders", 0): OffsetToCommit(offset=1)},
        knows_member_epochs=not (is_classic and is_old),
    )
    return groups.committed(groups.ask(request)).error is NONE


def hold_the_change(groups: Coordinator, *members: ClassicMember) -> None:
    """Go on until the group is on its way to the log as a classic one, and no further."""
    groups.holds_writes = True
    while not any(isinstance(key, GroupMetadataKey) for w in groups.held for key, _ in w.records):
        if groups.held:
            groups.store_one()
        for member in members if not groups.held else ():
            member.turn()


def reasons(groups: Coordinator) -> Sequence[str]:
    return [why for each in groups.shard.rebalances(GROUP) or () for why in each.reasons]
