"""Groups with `flush=os` are judged like the others, until they had a right to lose something."""

from uuid import UUID

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.watch import Watch

KEY = PartitionKey(UUID(int=1), 0)


def watch(*, is_journaled: bool) -> Watch:
    voters = (NodeId(1), NodeId(2), NodeId(3))
    return Watch([SimulatedGroup(KEY, TopicPartition("words", 0), voters, is_journaled)])


def test_a_minority_that_loses_power_excuses_nothing() -> None:
    judges = watch(is_journaled=False)
    judges.loses_power(NodeId(1))
    assert judges.has_unclean
    assert not judges.may_have_lost(KEY)


def test_a_majority_that_loses_power_may_have_lost_what_was_in_memory() -> None:
    judges = watch(is_journaled=False)
    judges.loses_power(NodeId(1))
    judges.loses_power(NodeId(3))
    assert judges.may_have_lost(KEY)


def test_a_group_in_the_journal_has_no_such_excuse() -> None:
    judges = watch(is_journaled=True)
    for node in (1, 2, 3):
        judges.loses_power(NodeId(node))
    assert not judges.may_have_lost(KEY)


def test_runs_have_groups_of_either_kind() -> None:
    knobs = [simulate(seed, seconds=0.01).knobs for seed in range(12)]
    assert {bool(drawn.unsynced) for drawn in knobs} == {True, False}
