"""What blocks on the disk, on another thread while the loop goes on."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import trio

from tidemark.protocol.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `trio.to_thread.run_sync`, but what the disk refuses keeps nothing alive once it was
    handled.

    An error has the frames that it came through, and of these, trio's have the error. So all that
    the step had would stay until garbage is collected, which is seldom; and the room of a removed
    file is free only once nobody has it open.
    """
    try:
        return await trio.to_thread.run_sync(partial(step, *args, **kwargs))
    except (OSError, StorageError) as error:
        _leave_frames(error)
        raise


def _leave_frames(error: BaseException) -> None:
    """Of it, and of those that it came of."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
