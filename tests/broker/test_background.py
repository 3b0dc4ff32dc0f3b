"""Tasks that no cancelling reaches, and that end with their block all the same."""

import pytest
import trio
import trio.testing

from tidemark.broker.background import open_background


async def test_a_task_runs_on_while_the_block_that_was_cancelled_is_left() -> None:
    steps = []

    async def step_by_step() -> None:
        for number in range(3):
            steps.append(number)
            await trio.lowlevel.checkpoint()

    with trio.CancelScope() as scope:
        async with open_background() as tasks:
            try:
                scope.cancel()
                await trio.sleep_forever()
            finally:
                tasks.start_soon(step_by_step)
                with trio.CancelScope(shield=True):
                    await trio.testing.wait_all_tasks_blocked()
    assert steps == [0, 1, 2]


@pytest.mark.timeout(30)  # nothing else ends it where it fails
@pytest.mark.parametrize("ticks", range(4))
async def test_a_block_that_is_cancelled_as_it_opens_is_left(ticks: int) -> None:
    """A broker that was told to stop while it started waited for ever."""

    async def cancel(scope: trio.CancelScope) -> None:
        for _ in range(ticks):
            await trio.lowlevel.cancel_shielded_checkpoint()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel, nursery.cancel_scope)
        if not ticks:
            nursery.cancel_scope.cancel()
        async with open_background():
            await trio.sleep_forever()


async def test_a_task_that_fails_ends_the_block() -> None:
    async def fail() -> None:
        raise OSError("no disk")

    with pytest.RaisesGroup(OSError, flatten_subgroups=True):
        async with open_background() as tasks:
            tasks.start_soon(fail)
            await trio.sleep_forever()
