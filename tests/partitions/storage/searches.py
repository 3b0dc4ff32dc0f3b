"""Searches by time from their first step to the last, as a broker makes them."""

from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.timestamps import FirstSince, Largest, Search, TimestampAndOffset
from tidemark.protocol.types import Offset


def find_timestamp(log: Log, timestamp_ms: int, *, end_offset: Offset) -> TimestampAndOffset | None:
    """The first record below `end_offset` whose timestamp is this or later."""
    return searched(log, FirstSince(timestamp_ms), end_offset)


def max_timestamp(log: Log, *, end_offset: Offset) -> TimestampAndOffset | None:
    """The first of the records below `end_offset` that have the largest timestamp."""
    return searched(log, Largest(), end_offset)


def searched(
    log: Log, search: Search, end_offset: Offset, *, at_once: int = 3
) -> TimestampAndOffset | None:
    """What the search comes to, a few records at a time."""
    while not search.is_over:
        look = log.next_look(search, end_offset=end_offset)
        if look is not None:
            records = look.open()
            while search.take(look, records, at_once):
                pass
    return search.found
