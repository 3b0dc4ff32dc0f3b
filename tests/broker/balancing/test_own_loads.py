"""A broker looks at what it leads only where something may have happened."""

from collections.abc import Iterator

from trio.testing import MockClock

from tests.broker.balancing.world import open_world
from tidemark.broker.balancing.own_loads import OwnLoads
from tidemark.broker.metadata.topic import Topic
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
