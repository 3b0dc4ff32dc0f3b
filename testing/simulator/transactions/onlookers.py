"""Who only asks, all the time: how far groups have got, and what a compacted partition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import READ_COMMITTED, Offset, TopicPartition
from tidemark.testing.checkers.transactions import Fetched, Keyed, Scan
from tidemark.testing.simulator.transactions.asking import FetchOffset, Found, Read
from tidemark.testing.simulator.transactions.clients import COUNTERS, TRANSFORMERS
from tidemark.testing.simulator.transactions.readers import Cursor
from tidemark.testing.simulator.transactions.talker import Talker

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.play import Play

_SCAN_BYTES: Final = 2000


async def look_on(play: Play, talker: Talker) -> None:
    """Ask all the time how far the groups have got."""
    while not play.is_stopped:
        await ask_offsets(play, talker)
        await talker.sleep(talker.rng.expovariate(3.0))


async def scan(play: Play, talker: Talker, partition: TopicPartition) -> None:
    """Read a compacted partition from its start to its end, again and again."""
    key = play.places.key(partition)
    while not play.is_stopped:
        started, cursor, last = talker.now, Cursor(), dict[str, Keyed]()
        while not cursor.is_at_the_end and not play.is_stopped:
            read = Read(offset=cursor.offset, bytes_max=_SCAN_BYTES, isolation=READ_COMMITTED)
            answer = await talker.ask(key, read)
            if isinstance(answer.value, Found):
                for record in cursor.take(answer.value, isolation=READ_COMMITTED):
                    name, value = (record.key or b"").decode(), (record.value or b"").decode()
                    last[name] = Keyed(record.offset, name, value)
            await talker.sleep(talker.rng.expovariate(20.0))
        if cursor.is_at_the_end:
            play.scans.append(Scan(partition, started, last))
        await talker.sleep(talker.rng.expovariate(2.0))


async def ask_offsets(play: Play, talker: Talker) -> bool:
    """Once, of each group and partition. Whether all were told."""
    is_complete = True
    for group_id in (TRANSFORMERS, COUNTERS):
        key = play.places.groups_coordinator(group_id)
        for partition in play.places.inputs:
            started = talker.now
            asked = FetchOffset(group_id=group_id, partition=partition)
            answer = await talker.ask(key, asked)
            if answer.error is ErrorCode.NONE and isinstance(answer.value, int):
                told = Fetched(group_id, partition, Offset(answer.value), started)
                play.fetched.append(told)
            else:
                is_complete = False
    return is_complete
