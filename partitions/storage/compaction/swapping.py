"""Putting a new segment in the place of old ones, so that every crash leaves one or the other.

1. The new segment is on the disk, under a name that a start removes.
2. It is renamed to what says for which offsets it stands, and the directory is synced. From here on
   it counts: a start that finds the name goes on with the next step.
3. The old segments are removed, all their files, and the directory is synced.
4. The new segment gets its own name, and so do its indexes.

A second swap of the same log begins when the first is done.
"""

from collections.abc import Callable
from functools import partial

from tidemark.partitions.storage.compaction.names import (
    SwapRange,
    new_index_path,
    new_log_path,
    new_time_index_path,
    replaced_by,
    swap_path,
    swaps_in,
)
from tidemark.partitions.storage.files import Files, remove_if_there
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)


def commit_swap(files: Files, directory: str, swap: SwapRange) -> None:
    """Step 2. It is durable once the directory is synced."""
    files.rename(new_log_path(directory, *swap), swap_path(directory, *swap))


def undo_commit(files: Files, directory: str, swap: SwapRange) -> None:
    """Undo step 2, of which nobody knows whether it is durable: a start finds what is read now."""
    files.rename(swap_path(directory, *swap), new_log_path(directory, *swap))


def finish_swap(
    files: Files, directory: str, swap: SwapRange, sync: Callable[[], None] | None = None
) -> None:
    """Steps 3 and 4. Blocking; durable on return. It may have been begun before, and left anywhere.

    `sync` syncs the directory, if somebody wants to know how that ends.
    """
    sync, base_offset = sync or partial(files.sync_directory, directory), swap.base_offset
    there = files.sizes(directory)
    # Else the new segment has its own name already, and is none of those that it replaces.
    if swap in swaps_in(there):
        for name in replaced_by(swap, there):
            files.remove(f"{directory}/{name}")
        sync()
        path = f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"
        files.rename(swap_path(directory, *swap), path)
    for path, suffix in (
        (new_index_path(directory, *swap), INDEX_SUFFIX),
        (new_time_index_path(directory, *swap), TIME_INDEX_SUFFIX),
    ):
        if files.exists(path):
            files.rename(path, f"{directory}/{file_name(base_offset, suffix)}")
    sync()


def give_up_swap(files: Files, directory: str, swap: SwapRange) -> None:
    """The new segment is not wanted any more."""
    for path in (new_log_path, new_index_path, new_time_index_path):
        remove_if_there(files, path(directory, *swap))


def finish_swaps(files: Files, directory: str) -> dict[str, int]:
    """What a crash has interrupted, done before anybody looks at the log's files; the files that
    there are then, with their sizes."""
    there = files.sizes(directory)
    swaps = swaps_in(there)
    for swap in swaps:
        finish_swap(files, directory, swap)
    return files.sizes(directory) if swaps else there
