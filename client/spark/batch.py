"""Reading what is there now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from tidemark.client.spark.driver import Driver, check_within
from tidemark.client.spark.options import SourceOptions
from tidemark.client.spark.pushdown import Pushed
from tidemark.client.spark.ranges import OffsetRange, resolve, split
from tidemark.client.spark.task import read_range
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition


class BatchReader(DataSourceReader):
    """Made on the driver, and copied into every task."""

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._names = names
        self._pushed = Pushed()

    def partitions(self) -> Sequence[OffsetRange]:
        """One range per partition that has records, or more, as the option minPartitions asks.

        The places are looked up here, so that a DataFrame that is read again sees what is new.
        """
        options = self._options
        with Driver(options) as driver:
            partitions = driver.partitions()
            beginnings, ends = driver.beginnings(partitions), driver.ends(partitions)
            starting = resolve(options.starting, partitions, driver, "starting")
            # The ends are asked for once, so that all that this batch reads is of one moment.
            ending = ends
            if options.ending != "latest":
                ending = resolve(options.ending, partitions, driver, "ending")
            wanted = [tp for tp in partitions if self._pushed.keeps(tp)]
            since: Mapping[TopicPartition, int | None] = {}
            if self._pushed.since_ms is not None:
                since = driver.at_times(dict.fromkeys(wanted, self._pushed.since_ms))
        ranges = [
            self._pushed.clip(
                self._checked(OffsetRange(tp, starting[tp], ending[tp]), beginnings[tp], ends[tp]),
                since,
            )
            for tp in wanted
        ]
        return split(ranges, options.min_partitions, records_max=options.max_records_per_partition)

    def _checked(self, asked: OffsetRange, beginning: int, end: int) -> OffsetRange:
        """The range within what the log has, from `beginning` to `end`."""
        tp = asked.topic_partition
        if asked.start > asked.end and not isinstance(self._options.ending, str):
            raise ConfigError(
                f"{tp}: the starting offset {asked.start} is behind the ending offset {asked.end};"
                " set startingOffsets and endingOffsets so that it is not"
            )
        check_within(self._options, asked, beginning, end)
        start = min(max(asked.start, beginning), end)
        return OffsetRange(tp, start, max(start, min(asked.end, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._names, partition)


class FilteringReader(BatchReader):
    """The same, told of the query's filters.

    Only with the option filterPushdown: a reader that could be told makes every read fail while
    Spark's setting spark.sql.python.filterPushdown.enabled is off, which it is by default.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._pushed.take(filters)
