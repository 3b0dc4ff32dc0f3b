"""The driver's questions to the cluster: which partitions there are, where they begin and end."""

import logging
import re
import time
from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType
from typing import Self, assert_never

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.offsets import Beginning, End
from tidemark.client.spark.options import Assign, SourceOptions, Subscribe, SubscribePattern
from tidemark.client.spark.ranges import Offsets
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import TopicPartition

log = logging.getLogger(__name__)


class DataLoss(TidemarkError):
    """Records that should be read are not there any more."""


def report_loss(options: SourceOptions, what: str) -> None:
    """Raise `DataLoss`, or only log it where the option failOnDataLoss is false."""
    if options.fail_on_data_loss:
        raise DataLoss(f"{what}; set the option failOnDataLoss to false to go on without them")
    log.warning("%s", what)


class Driver:
    """Connects when first asked, and stays connected until closed."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._stack = ExitStack()
        self._client: BlockingClient | None = None
        self._ends: tuple[float, dict[TopicPartition, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client = None
        self._stack.close()

    def partitions(self) -> list[TopicPartition]:
        """The partitions to read, sorted. Raises `RequestError` for a topic that is not there."""
        selection = self._options.selection
        match selection:
            case Assign(partitions):
                return list(partitions)
            case Subscribe(topics):
                found = self._connected().run(self._connected().admin.describe_topics, topics)
            case SubscribePattern(pattern):
                every = self._connected().run(self._connected().admin.list_topics)
                found = [topic for topic in every if re.fullmatch(pattern, topic.name)]
            case _:
                assert_never(selection)
        return sorted(
            TopicPartition(topic.name, partition.partition)
            for topic in found
            for partition in topic.partitions
        )

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The log starts."""
        return self._list(partitions, Beginning())

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of what can be read."""
        return self._list(partitions, End())

    def recent_ends(self) -> dict[TopicPartition, int]:
        """The ends of all partitions to read, at most `offset_cache_ms` old.

        Spark asks a stream ninety times a second, for the latest offset and again to report it.
        """
        age_max = self._options.offset_cache_ms / 1000
        if self._ends is None or time.monotonic() - self._ends[0] > age_max:
            return self.ends_now()
        return self._ends[1]

    def ends_now(self) -> dict[TopicPartition, int]:
        """The same, looked up at once."""
        ends = self.ends(self.partitions())
        self._ends = time.monotonic(), ends
        return ends

    def _list(
        self, partitions: Collection[TopicPartition], place: Beginning | End
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        client = self._connected()
        if isinstance(place, End) and self._options.level.is_confirmed:
            confirmed = client.run(client.admin.confirmed_ends, partitions)
            return {tp: int(end.high_watermark) for tp, end in confirmed.items()}
        found = client.run(
            client.admin.list_offsets,
            dict.fromkeys(partitions, place),
            isolation=self._options.isolation,
        )
        return {tp: int(listed.offset) for tp, listed in found.items()}

    def _connected(self) -> BlockingClient:
        if self._client is None:
            self._client = self._stack.enter_context(
                open_client(self._options.bootstrap, settings=self._options.client)
            )
        return self._client


def check_starts(
    options: SourceOptions, starts: Offsets, beginnings: Offsets
) -> dict[TopicPartition, int]:
    """The starts, those whose records retention has taken moved to the log start."""
    checked: dict[TopicPartition, int] = {}
    for tp, start in starts.items():
        if start < beginnings[tp]:
            report_loss(
                options,
                f"{tp}: the records from {start} to {beginnings[tp]} are not there any more",
            )
        checked[tp] = max(start, beginnings[tp])
    return checked
