"""What the files of a log are called: Kafka's names, 20 digits of an offset and a suffix.

| name                           | what |
|--------------------------------|------|
| `00000000000000000042.log`       | record batches from offset 42 on |
| `00000000000000000042.index`     | offset index of that segment |
| `00000000000000000042.timeindex` | time index of that segment |
| `00000000000000000042.snapshot`  | producer state of all below offset 42 |
"""

import re
from functools import lru_cache
from typing import Final

from tidemark.protocol.types import Offset

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

_NAME: Final = re.compile(r"(\d{20})(\.[a-z]+)")


def file_name(offset: Offset, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_in(name: str, suffix: str) -> Offset | None:
    """The offset that a file's name states; `None` for a name that does not end in `suffix`."""
    parts = _parts_of(name)
    return parts[0] if parts is not None and parts[1] == suffix else None


# A start asks several times for each of thousands of logs, most of which begin alike.
@lru_cache(maxsize=256)
def _parts_of(name: str) -> tuple[Offset, str] | None:
    match = _NAME.fullmatch(name)
    return None if match is None else (Offset(int(match[1])), match[2])
