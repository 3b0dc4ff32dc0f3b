"""Having the kernel write what it keeps of a file a little at a time.

A sync of tens of megabytes that were appended holds up whoever appends meanwhile, for tens of
milliseconds, half of the time it takes. Where most of it has been written back before, a megabyte
after the other, nobody is held up, and it takes no longer in all. Linux has a call for that, and
Python does not.

It also has the kernel begin, and not wait: of several files that are to be synced one after the
other, the disk then takes all while the first is waited for.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

_PIECE_BYTES: Final = 1 << 20
_WRITE: Final = 2
"""`SYNC_FILE_RANGE_WRITE`."""
_WRITE_AND_WAIT: Final = 1 | _WRITE | 4
"""`SYNC_FILE_RANGE_WAIT_BEFORE` and `_WAIT_AFTER`, too."""
_TO_THE_END: Final = 0
_NO_SUCH_CALL: Final = frozenset({errno.ENOSYS, errno.EPERM})
"""The kernel does not have it, or a sandbox does not let it through."""

_SyncFileRange = Callable[[int, int, int, int], int]


def write_back(descriptor: int, start: int, end: int) -> None:
    """Have these bytes written, and block until they are. That is no sync: the disk may keep them
    where it forgets them, and nobody may know yet where they are.

    Raises `OSError` if one of them could not be; a sync that follows would not tell. Does nothing
    where the system cannot.
    """
    for position in range(start, end, _PIECE_BYTES):
        if not _asked(descriptor, position, _PIECE_BYTES, _WRITE_AND_WAIT):
            return


def begin_writing(descriptor: int) -> None:
    """Have all of a file begin to be written. That is no sync, either. Raises `OSError` if it could
    not be. Does nothing where the system cannot."""
    _asked(descriptor, 0, _TO_THE_END, _WRITE)


def _asked(descriptor: int, start: int, length: int, flags: int) -> bool:
    """Whether the system can."""
    sync_file_range = _sync_file_range()
    if sync_file_range is None:
        return False
    if sync_file_range(descriptor, start, length, flags):
        number = ctypes.get_errno()
        if number in _NO_SUCH_CALL and not _is_let_through(sync_file_range, descriptor):
            return False
        raise OSError(number, os.strerror(number))
    return True


def _is_let_through(sync_file_range: _SyncFileRange, descriptor: int) -> bool:
    # Asked for nothing: of what the disk has refused, the same number might be said.
    return not sync_file_range(descriptor, 0, 0, 0) or ctypes.get_errno() not in _NO_SUCH_CALL


@cache
def _sync_file_range() -> _SyncFileRange | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is not None:
        # `off64_t` is of 64 bits everywhere.
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function
