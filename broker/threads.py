"""What blocks on the disk, on another thread while the loop goes on."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

import trio

from tidemark.protocol.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")

_NO_THREAD: Final = "can't start new thread"
"""What Python says of it; it does not tell what the system said."""
RETRY_SECONDS: Final = 0.5

logger = logging.getLogger(__name__)


async def run_in_thread(
    step: Callable[..., T], *args: object, limiter: trio.CapacityLimiter | None = None
) -> T:
    """As `trio.to_thread.run_sync`, but where no thread can be started now it waits until one can.

    The user or the container may have no more processes, which threads count among, or there is no
    memory for its stack. That passes, and what the loop does by itself goes on meanwhile.
    """
    has_begun = is_told = False

    def run() -> T:
        nonlocal has_begun
        has_begun = True
        return step(*args)

    while True:
        try:
            return await trio.to_thread.run_sync(run, limiter=limiter)
        except RuntimeError as error:
            if has_begun or str(error) != _NO_THREAD:
                raise
        if not is_told:
            logger.warning(
                "no thread can be started, and what needs one waits: let the process have more "
                "(`ulimit -u`, or the limit of its container) or more memory"
            )
        is_told = True
        await trio.sleep(RETRY_SECONDS)


async def in_thread(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `run_in_thread`, but what the disk refuses keeps nothing alive once it was handled.

    An error has the frames that it came through, and of these, trio's have the error. So all that
    the step had would stay until garbage is collected, which is seldom; and the room of a removed
    file is free only once nobody has it open.
    """
    try:
        return await run_in_thread(partial(step, *args, **kwargs))
    except (OSError, StorageError) as error:
        _leave_frames(error)
        raise


def _leave_frames(error: BaseException) -> None:
    """Of it, and of those that it came of."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
