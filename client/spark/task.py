"""What a task does: read a range of one partition and hand out rows."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tidemark.client.blocking import KeptConnections
from tidemark.client.columns import read_columns
from tidemark.client.spark.driver import Driver, explaining, report_loss
from tidemark.client.spark.options import SourceOptions
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.rows import ROWS_BYTES, RowMaker, in_pieces
from tidemark.protocol.errors import ErrorCode, RequestError

# The one thing that outlives a task. Spark's workers run one task after another, and a connection
# takes as long to make as many a small task runs.
_CONNECTIONS: Final = KeptConnections()


def read_range(
    options: SourceOptions, names: tuple[str, ...], wanted: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The rows of an `OffsetRange`, with the columns `names`.

    Raises `DataLoss`, or goes on behind the gap, where retention took records away after the range
    was planned.
    """
    if not isinstance(wanted, OffsetRange):
        return  # what Spark puts in the place of no ranges at all
    maker = RowMaker(wanted.topic_partition, names)
    try:
        yield from _read(options, maker, wanted)
    except RequestError as error:
        # It is the first fetch that fails so: a reader's position does not fall out of the log
        # faster than it reads, or this raises it the second time.
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        tp = wanted.topic_partition
        report_loss(options, f"the records of {tp} from {wanted.start} on are not there: {error}")
        with Driver(options) as driver:
            beginning, end = driver.beginnings([tp])[tp], driver.ends([tp])[tp]
        left = OffsetRange(tp, max(wanted.start, beginning), min(wanted.end, end))
        yield from _read(options, maker, left)


def _read(options: SourceOptions, maker: RowMaker, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    batches = read_columns(
        options.bootstrap,
        wanted.topic_partition,
        wanted.start,
        wanted.end,
        columns=maker.sources,
        settings=options.client,
        fetch_bytes=options.batch_bytes,
        isolation=options.isolation,
        connections=_CONNECTIONS,
        patience_seconds=options.client.retry_timeout_seconds,
    )
    with closing(batches), explaining(options.client, f"reading {wanted.topic_partition}"):
        for batch in batches:
            yield from in_pieces(maker.rows(batch), min(options.batch_bytes, ROWS_BYTES))
