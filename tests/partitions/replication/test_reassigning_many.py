"""Thousands of groups may be wished elsewhere at once: each has its turn, and looks cost little."""

from tests.partitions.replication.moving_many import GROUPS, Many
from tidemark.partitions.storage.state_db import PartitionKey


def test_of_those_in_whose_way_something_stands_some_are_looked_at_each_time() -> None:
    cluster = Many()
    cluster.kill(4)
    cluster.run(5)
    seen = []
    for _ in range(4):
        cluster.look()
        seen.append(cluster.whys()["broker 4 cannot be reached"])
    assert seen == [3, 6, 9, 10]


def test_all_have_their_turn_by_and_by() -> None:
    cluster = Many()
    done = set[PartitionKey]()
    for _ in range(2000):
        cluster.look()
        done |= {key for part in cluster.parts.values() for key, _ in part.done()}
        if len(done) == GROUPS:
            break
    assert done == {*cluster.keys}
