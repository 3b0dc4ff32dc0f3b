"""Reading what is there now."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tidemark.client.spark.driver import Driver, check_starts, report_loss
from tidemark.client.spark.options import SourceOptions
from tidemark.client.spark.ranges import OffsetRange, resolve, split
from tidemark.client.spark.task import read_range
from tidemark.protocol.types import TopicPartition


class BatchReader(DataSourceReader):
    """Made on the driver, and copied into every task."""

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._names = names

    def partitions(self) -> Sequence[OffsetRange]:
        """One range per partition that has records, or more, as the option minPartitions asks.

        The places are looked up here, so that a DataFrame that is read again sees what is new.
        """
        options = self._options
        with Driver(options) as driver:
            partitions = driver.partitions()
            beginnings, ends = driver.beginnings(partitions), driver.ends(partitions)
        starting = resolve(options.starting, partitions, beginnings, ends, option="startingOffsets")
        ending = resolve(options.ending, partitions, beginnings, ends, option="endingOffsets")
        starting = check_starts(options, starting, beginnings)
        return split(
            [
                OffsetRange(tp, starting[tp], self._checked_end(tp, ending[tp], ends[tp]))
                for tp in partitions
            ],
            options.min_partitions,
        )

    def _checked_end(self, tp: TopicPartition, ending: int, end: int) -> int:
        if ending > end:
            report_loss(self._options, f"{tp} ends at {end}, before the ending offset {ending}")
        return min(ending, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._names, partition)
