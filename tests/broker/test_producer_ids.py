"""Producer ids: each once, and nobody waits longer than one attempt to get more takes."""

import pytest
import trio
from trio.testing import MockClock

from tidemark.broker.metadata.producer_ids import BLOCK_SIZE, ProducerIds
from tidemark.partitions.state_machines.cluster_commands import ProducerIdBlock
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import ProducerId

ATTEMPT_SECONDS = 30.0


class Allocator:
    """A leader of the metadata that may be away; then it takes its time to see that."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    async def allocate(self, count: int) -> ProducerIdBlock:
        first = self.asked * count
        self.asked += 1
        await trio.sleep(ATTEMPT_SECONDS)
        if self.is_away:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads")
        return ProducerIdBlock(first=ProducerId(first), end=ProducerId(first + count))


async def take_at_once(ids: ProducerIds, count: int) -> tuple[list[ProducerId], list[ErrorCode]]:
    taken, refused = list[ProducerId](), list[ErrorCode]()

    async def take() -> None:
        try:
            taken.append(await ids.take())
        except RequestError as error:
            refused.append(error.code)

    async with trio.open_nursery() as tasks:
        for _ in range(count):
            tasks.start_soon(take)
    return taken, refused


async def test_each_id_is_given_once_and_one_attempt_is_for_all(autojump_clock: MockClock) -> None:
    allocator = Allocator()
    ids = ProducerIds(allocator.allocate)
    taken, refused = await take_at_once(ids, BLOCK_SIZE + 1)
    assert sorted(taken) == list(range(BLOCK_SIZE + 1))
    assert not refused
    assert trio.current_time() == 2 * ATTEMPT_SECONDS


async def test_all_who_wait_in_vain_wait_for_one_attempt(autojump_clock: MockClock) -> None:
    allocator = Allocator()
    allocator.is_away = True
    ids = ProducerIds(allocator.allocate)
    assert await take_at_once(ids, 5) == ([], [ErrorCode.NOT_CONTROLLER] * 5)
    assert (allocator.asked, trio.current_time()) == (1, ATTEMPT_SECONDS)
    allocator.is_away = False
    taken, refused = await take_at_once(ids, 2)
    assert (len(taken), refused, allocator.asked) == (2, [], 2), "who comes later tries anew"


async def test_who_goes_while_it_asks_leaves_others_their_own_attempt(
    autojump_clock: MockClock,
) -> None:
    allocator = Allocator()
    ids = ProducerIds(allocator.allocate)
    with pytest.raises(trio.TooSlowError), trio.fail_after(ATTEMPT_SECONDS / 2):
        await ids.take()
    assert await ids.take() == BLOCK_SIZE
