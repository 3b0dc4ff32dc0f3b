"""Topics whose retention keeps up: all that a run has written is given up before the next.

A log that has come to that writes its new segments over the files of the old ones
(`partitions/storage/recycled_file.py`). One that only grows, or was just made, writes to new pages,
which takes longer: so what is compared with it has to be said of the one or the other. Here a topic
is written until it has come to that, before anybody looks.
"""

import os
from collections.abc import Callable
from typing import Final, Self

from tidemark.client import TopicPartition
from tidemark.client.blocking import open_client
from tidemark.protocol.types import Offset

WARM_BYTES: Final = 3 << 30
"""Two segments, and the third is written over the first."""


class KeptShort:
    """Calling it gives the topic's name, once all that was in it is given up. As a block it leaves
    none behind."""

    def __init__(self, bootstrap: str, topic: str, make: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        make(topic)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with open_client(self._bootstrap) as client:
            client.run(client.admin.delete_topic, self._topic)

    def warmed(self, load: Callable[[str], float]) -> Self:
        """Have been written what takes it to where its files are used again, and leave nothing of
        it for the disk to do; `load` writes to the topic and says how many bytes."""
        written = 0.0
        while written < WARM_BYTES:
            written += load(self())
        os.sync()
        return self

    def __call__(self) -> str:
        with open_client(self._bootstrap) as client:
            all_of_it = {TopicPartition(self._topic, 0): Offset(-1)}
            client.run(client.admin.delete_records, all_of_it)
        return self._topic
