"""What a replica hears of a leader while its disk has no room for records.

It stays a follower that votes and knows its leader; records are as good as lost on the way, and are
sent again, less and less often. Were they refused by its log, the replica would take no part until
it begins anew, once a second, and be sent as much each time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from tidemark.partitions.raft.entries import Entry, EpochStart
from tidemark.partitions.raft.messages import AppendRequest, Message, PullResponse


def without_records(message: Message) -> Message | None:
    """The message up to its first records; `None` if nothing is before them.

    A request without any entries is answered, and what follows it would be sent at once: so it must
    not become one.
    """
    if not isinstance(message, AppendRequest | PullResponse) or not message.entries:
        return message
    entries = tuple(takewhile(_is_epoch_start, message.entries))
    if not entries:
        return None
    return message if len(entries) == len(message.entries) else replace(message, entries=entries)


def _is_epoch_start(entry: Entry) -> bool:
    return isinstance(entry, EpochStart)
