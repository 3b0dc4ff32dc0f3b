"""How far a log was compacted, beside its segments: so that a start need not do it again.

`compacted`: 12 bytes, big-endian. Without it, or where it is damaged, all of the log counts as
dirty, which costs one long run and nothing else. It is written at the end of each run, so its time
is that of the last one.

| at | field      | type   | |
|---:|------------|--------|-|
|  0 | crc        | uint32 | CRC32C of what follows |
|  4 | cleaned to | int64  | below this offset no key stands twice |
"""

from struct import Struct
from typing import Final

from tidemark.partitions.storage.files import Files, read_file, remove_if_there, replace_file
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.types import Offset

NAME: Final = "compacted"
_OFFSET: Final = Struct(">q")
_CRC: Final = Struct(">I")
_BYTES: Final = _CRC.size + _OFFSET.size


def load_progress(files: Files, directory: str) -> Offset:
    """0 if nothing is known."""
    try:
        data = read_file(files, f"{directory}/{NAME}")
    except FileNotFoundError:
        return Offset(0)
    if len(data) != _BYTES or _CRC.unpack_from(data)[0] != crc32c(data[_CRC.size :]):
        return Offset(0)
    return Offset(_OFFSET.unpack_from(data, _CRC.size)[0])


def saved_ms(files: Files, directory: str) -> int | None:
    """When the last run has ended, in ms since 1970; `None` if nothing is known."""
    try:
        return files.modified_ms(f"{directory}/{NAME}")
    except FileNotFoundError:
        return None


def save_progress(files: Files, directory: str, cleaned_to: Offset) -> None:
    """Blocking. It need not be durable before anything else is."""
    payload = _OFFSET.pack(cleaned_to)
    replace_file(files, f"{directory}/{NAME}", _CRC.pack(crc32c(payload)) + payload)


def forget_progress(files: Files, directory: str) -> None:
    remove_if_there(files, f"{directory}/{NAME}")
