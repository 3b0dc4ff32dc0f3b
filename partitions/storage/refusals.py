"""What an `OSError` says of the disk: something was not taken now, or nothing more will be.

| error | what was refused |
|---|---|
| no room (`ENOSPC`, `EDQUOT`) | may be taken once there is some |
| no descriptors, no memory (`EMFILE`, `ENFILE`, `ENOMEM`) | was never asked of the disk |
| anything else | the disk does not take what it is told, and nothing is known about it since |

A sync that found no room is none that passes: what it was for may be lost. So `Files` says of a
sync whether it was one that failed, with `SyncFailed`; a directory that could not be opened for its
sync was not synced, and nothing has happened to it.
"""

import errno
from typing import Final

from tidemark.protocol.errors import StorageError

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_ASKED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_PASSING: Final = NO_ROOM | NOT_ASKED


class SyncFailed(OSError):
    """The disk was asked to sync, and did not. Asked again, it might say that it has."""


class NotRecorded(StorageError):
    """`state.db` was not written, or not read: nothing was changed, and it may be tried again."""


def may_pass(error: OSError) -> bool:
    """Whether what was not written may be tried again."""
    return error.errno in _PASSING


def was_not_written(error: OSError) -> bool:
    """The same, of what was to be written and synced: no sync of it was refused."""
    return may_pass(error) and not isinstance(error, SyncFailed)


def was_not_asked(error: OSError) -> bool:
    """Whether it may be tried again though it was a sync: none has begun."""
    return error.errno in NOT_ASKED and not isinstance(error, SyncFailed)


def why_it_ended(error: OSError, path: str) -> str:
    """For people: why a broker does not go on with the data directory at `path`.

    It ends though only one file may be gone, as Kafka's does with its only log directory. Where a
    file was removed that is open, every write and every sync of it succeeds and is lost: so what
    else is gone nobody can tell, and other replicas had better lead.
    """
    if error.errno == errno.ENOENT:
        return (
            f"{error.filename or path} is gone: somebody has removed files of {path} while the "
            "broker used them, so it has stopped. What was written to them since is lost here. "
            "Start it again: it takes the records from other replicas, and says which partitions "
            "have none"
        )
    return (
        f"a write or a sync of {path} failed: {error}. Nothing is known about the disk since, so "
        "the broker has stopped; records that were not acknowledged may be lost"
    )


def may_lose(error: OSError) -> bool:
    """Whether a sync that failed so leaves in the page cache what the disk has not; fsync(2)."""
    return error.errno == errno.EIO or error.errno in NO_ROOM
