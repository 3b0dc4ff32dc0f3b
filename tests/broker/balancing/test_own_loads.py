"""A broker looks at what it leads only where something may have happened."""

from collections.abc import Iterator
from pathlib import Path

from trio.testing import MockClock

from tests.broker.balancing.world import open_world
from tests.broker.nodes import open_node
from tidemark.broker.balancing.own_loads import OwnLoads
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.protocol.messages.peer.load_report import GroupLoad
from tidemark.protocol.types import NodeId


class Looked:
    """Topics that count how often they are gone through."""

    def __init__(self) -> None:
        self.times = 0

    def __iter__(self) -> Iterator[Topic]:
        self.times += 1
        return iter(())


async def test_nothing_is_looked_at_again_until_something_has_happened(
    mock_clock: MockClock,
) -> None:
    async with open_world(1, 2) as world:
        looked, happened = Looked(), [1]
        own = OwnLoads(NodeId(1), lambda: happened[0])

        async def times() -> int:
            await own.look_at_all(looked, world.brokers)
            return looked.times

        assert [await times(), await times()] == [1, 1]
        happened[0] = 2
        assert [await times(), await times()] == [2, 2]
        world.set_alive(2, False)
        assert [await times(), await times()] == [3, 3]
        mock_clock.jump(61.0)
        assert [await times(), await times()] == [4, 4]


async def test_a_partition_with_traffic_is_measured_every_few_looks_and_some_at_each(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=8))
        own, alive, loads = OwnLoads(NodeId(1), lambda: 0), frozenset({NodeId(1)}), list[object]()
        measured = list[int]()
        for second in range(14):
            before, loads = loads, []
            for replica in topic.replicas:
                replica.bytes_out += 1_000
                loads.append(own.look(replica, alive, float(second)))
            measured.append(sum(a is not b for a, b in zip(before, loads, strict=False)))
        assert measured[1:] == [8] + 12 * [2]
        assert {load.bytes_out_per_second for load in loads if isinstance(load, GroupLoad)} == {
            1_000
        }
        # Whoever comes or goes is seen at once: who is not alive has no known lag.
        with_another = frozenset({NodeId(1), NodeId(2)})
        again = [own.look(replica, with_another, 13.0) for replica in topic.replicas]
        assert not any(a is b for a, b in zip(loads, again, strict=True))
