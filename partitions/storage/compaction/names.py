"""What the files of a compaction are called: the offsets that they stand for, and a suffix.

| name | what |
|------|------|
| `<base>-<end>.log.tmp` | a new segment that is being written, or waits to be put in its place |
| `<base>-<end>.index.tmp`, `….timeindex.tmp` | its indexes |
| `<base>-<end>.swap` | a new segment that counts, in place of all that begins between the two |

A leftover that ends in `.tmp` is removed when the log is opened; a `.swap` is put in its place.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tidemark.partitions.storage.files import TEMPORARY_SUFFIX
from tidemark.partitions.storage.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, offset_in
from tidemark.protocol.types import Offset

SWAP_SUFFIX: Final = ".swap"
_SWAP: Final = re.compile(r"(\d{20})-(\d{20})\.swap")
_SEGMENT_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX)


class SwapRange(NamedTuple):
    """The offsets that a swapped segment stands for."""

    base_offset: Offset
    end_offset: Offset


def new_log_path(directory: str, base_offset: Offset, end_offset: Offset) -> str:
    return _path(directory, base_offset, end_offset, LOG_SUFFIX + TEMPORARY_SUFFIX)


def new_index_path(directory: str, base_offset: Offset, end_offset: Offset) -> str:
    return _path(directory, base_offset, end_offset, INDEX_SUFFIX + TEMPORARY_SUFFIX)


def new_time_index_path(directory: str, base_offset: Offset, end_offset: Offset) -> str:
    return _path(directory, base_offset, end_offset, TIME_INDEX_SUFFIX + TEMPORARY_SUFFIX)


def swap_path(directory: str, base_offset: Offset, end_offset: Offset) -> str:
    return _path(directory, base_offset, end_offset, SWAP_SUFFIX)


def _path(directory: str, base_offset: Offset, end_offset: Offset, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}-{end_offset:020d}{suffix}"


def swaps_in(names: Iterable[str]) -> list[SwapRange]:
    """The swaps that are not done yet, among the names of a log's files."""
    # Asked for each of thousands of logs at a start: hardly any has one.
    likely = [name for name in names if name.endswith(SWAP_SUFFIX)]
    found = (match for name in likely if (match := _SWAP.fullmatch(name)) is not None)
    return [SwapRange(Offset(int(match[1])), Offset(int(match[2]))) for match in found]


def replaced_by(swap: SwapRange, names: Iterable[str]) -> list[str]:
    """The files of the old segments, of each the `.log` last."""
    found = []
    for name in names:
        for number, suffix in enumerate(_SEGMENT_SUFFIXES):
            offset = offset_in(name, suffix)
            if offset is not None and swap.base_offset <= offset < swap.end_offset:
                found.append((offset, number, name))
    return [name for _, _, name in sorted(found)]
