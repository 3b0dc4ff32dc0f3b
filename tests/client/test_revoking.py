"""What a reader gets, and when it has come to the end, while its group takes partitions away."""

from functools import partial

import trio

from tests.client.groups import QUICK, wait_assigned
from tests.client.helpers import numbered, until, write
from tidemark.client import Client, Consumer, RequestError, TopicPartition


async def test_nothing_is_handed_out_of_what_is_being_revoked(
    client: Client, topic: str, group: str
) -> None:
    """Whoever gets it next would read it again: it begins at the commit."""
    await client.admin.create_topic(topic, partitions=2)
    for partition in range(2):
        await write(client, topic, numbered(3000), partition=partition)
    positions: list[tuple[int, int]] = []

    async def let_go(partitions: frozenset[TopicPartition]) -> None:
        commits = await one.committed()
        await trio.sleep(0.3)
        positions.extend((commits[each].offset, one.position(each)) for each in partitions)

    async def read() -> None:
        async for _ in one:
            await trio.sleep(0.001)

    join = partial(client.consumer, topic, group=group, **QUICK)
    async with join(on_revoked=let_go) as one, trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_assigned(one, 2)
        async with join() as two:
            await wait_assigned(two, 1)
        nursery.cancel_scope.cancel()
    assert positions
    for committed, position in positions:
        assert position - 1 <= committed <= position


async def test_a_cooperative_rebalance_refuses_no_commit_of_what_is_kept(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=4)
    settings = {**QUICK, "assignors": ["cooperative-sticky"], "auto_commit_seconds": None}
    join = partial(client.consumer, topic, group=group, **settings)
    commits = 0

    async def commit() -> None:
        nonlocal commits
        while True:
            before = one.assignment
            try:
                await one.commit()
                commits += 1
            except RequestError:
                assert not before <= one.assignment
            await trio.sleep(0.001)

    async with join() as one, trio.open_nursery() as nursery:
        await wait_assigned(one, 4)
        nursery.start_soon(commit)
        for _ in range(3):
            async with join() as two:
                await wait_assigned(two, 2)
            await wait_assigned(one, 4)
        nursery.cancel_scope.cancel()
    assert commits


async def test_a_rebalance_is_not_the_end(client: Client, topic: str, group: str) -> None:
    await client.admin.create_topic(topic, partitions=3)
    for partition in range(3):
        await write(client, topic, numbered(5), partition=partition)
    go = trio.Event()

    async def hold_up(_: frozenset[TopicPartition]) -> None:
        await go.wait()

    async def look() -> bool:
        return not one.assignment

    async def both(one: Consumer, two: Consumer) -> bool:
        return len(one.assignment) + len(two.assignment) == 3 and len(two.assignment) > 0

    join = partial(client.consumer, topic, group=group, **QUICK)
    with trio.fail_after(20):
        async with (
            join(until_end=True) as one,
            join(on_revoked=hold_up) as two,
        ):
            await until(lambda: both(one, two))
            async with join() as three:
                await until(look)
                with trio.move_on_after(0.2):
                    assert await anext(one, None) is not None
                go.set()
                await wait_assigned(three, 1)
            go.set()
