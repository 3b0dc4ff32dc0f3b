"""The readers against a real broker, without Spark around them."""

import pickle
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.blocking.reading import NothingCame
from tidemark.client.spark.batch import BatchReader, FilteringReader
from tidemark.client.spark.driver import CannotReach, DataLoss, Driver
from tidemark.client.spark.options import read_options
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.stream import StreamReader
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing import BlockingCluster

TP = TopicPartition("t", 0)
NOW_MS = int(time.time() * 1000)
_IN_2100_MS = 4_102_444_800_000


@pytest.fixture
def client(tidemark: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark.bootstrap) as opened:
        opened.run(opened.admin.create_topic, "t", partitions=1)
        yield opened


def produce(client: BlockingClient, count: int, size: int = 1, *, time_ms: int = NOW_MS) -> None:
    records = [Record(value=b"v" * size, timestamp_ms=time_ms)] * count
    with client.producer() as producer:
        batch = encode_batch(records, compression=Compression.ZSTD)
        producer.send_batch("t", 0, batch).wait()


def batch_reader(cluster: BlockingCluster, **options: str) -> BatchReader:
    given = {"bootstrap": cluster.bootstrap, "subscribe": "t", **options}
    return BatchReader(read_options(given, streaming=False), ("offset", "value"))


def offsets(reader: BatchReader | StreamReader, partition: InputPartition) -> list[int]:
    return [offset for batch in reader.read(partition) for offset in batch["offset"].to_pylist()]


def test_a_reader_that_was_pickled_reads_the_same(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 10)
    reader = batch_reader(tidemark)
    (partition,) = reader.partitions()
    in_task, wanted = pickle.loads(pickle.dumps((reader, partition)))
    assert offsets(in_task, wanted) == list(range(10))


def test_a_task_whose_topic_was_made_anew_does_not_wait_for_ever(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 10)
    reader = batch_reader(tidemark, **{"kafka.default.api.timeout.ms": "1500"})
    (partition,) = reader.partitions()
    client.run(client.admin.delete_topic, "t")
    client.run(client.admin.create_topic, "t", partitions=1)
    produce(client, 4)
    with pytest.raises(NothingCame, match=r"t-0 at 4: nothing came for 1\.5 s.*up to 10\. Was the"):
        offsets(reader, partition)


def test_what_is_planned_again_sees_what_is_new(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    reader = batch_reader(tidemark)
    assert reader.partitions() == []
    assert offsets(reader, InputPartition(None)) == [], "what Spark puts in the place of none"
    produce(client, 3)
    assert reader.partitions() == [OffsetRange(TP, 0, 3)]


def test_a_batch_ends_where_the_log_did_when_that_was_asked_first(
    tidemark: BlockingCluster, client: BlockingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All partitions' ends are of one moment, however often a plan looks at them."""
    produce(client, 5)
    ends = Driver.ends

    def growing(driver: Driver, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = ends(driver, partitions)
        produce(client, 1)
        return found

    monkeypatch.setattr(Driver, "ends", growing)
    assert batch_reader(tidemark).partitions() == [OffsetRange(TP, 0, 5)]


def test_a_fetch_that_grew_comes_in_pieces(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 100, size=10_000)
    reader = batch_reader(tidemark, batchBytes="100000")
    (partition,) = reader.partitions()
    rows = [batch.num_rows for batch in reader.read(partition)]
    assert sum(rows) == 100
    assert max(rows) <= 11


def test_retention_after_planning_is_an_error_or_skipped(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 5)
    produce(client, 5)
    strict, lax = batch_reader(tidemark), batch_reader(tidemark, failOnDataLoss="false")
    (partition,) = strict.partitions()
    client.run(client.admin.delete_records, {TP: Offset(7)})
    with pytest.raises(DataLoss, match="failOnDataLoss"):
        offsets(strict, partition)
    assert offsets(lax, partition) == [7, 8, 9]


def test_a_topic_made_anew_after_planning_is_an_error_or_has_no_rows(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 5)
    places = {"startingOffsets": '{"t": {"0": 3}}'}
    strict = batch_reader(tidemark, **places)
    lax = batch_reader(tidemark, **places, failOnDataLoss="false")
    (partition,) = strict.partitions()
    client.run(client.admin.delete_topic, "t")
    client.run(client.admin.create_topic, "t")
    with pytest.raises(DataLoss, match="the log is from 0 to 0"):
        offsets(strict, partition)
    assert offsets(lax, partition) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "option subscribe names a topic that is not there"),
        ({"assign": '{"t": [0, 7]}'}, "option assign names t-7"),
        ({"startingOffsets": '{"t": {"0": 3, "1": 3}}'}, "unknown: t-1"),
        (
            {"startingOffsets": '{"t": {"0": 3}}', "endingOffsets": '{"t": {"0": 2}}'},
            "starting offset 3 is behind the ending offset 2",
        ),
        ({"startingTimestamp": str(_IN_2100_MS)}, "startingTimestamp is after the last record"),
    ],
    ids=str,
)
def test_what_is_not_there_is_an_error_that_names_the_option(
    tidemark: BlockingCluster, client: BlockingClient, options: dict[str, str], message: str
) -> None:
    produce(client, 5)
    given = {"bootstrap": tidemark.bootstrap, **({} if "assign" in options else {"subscribe": "t"})}
    reader = BatchReader(read_options({**given, **options}, streaming=False), ("offset",))
    with pytest.raises(ConfigError, match=message):
        reader.partitions()


def test_filters_bound_what_is_planned(tidemark: BlockingCluster, client: BlockingClient) -> None:
    for time_ms in (NOW_MS, NOW_MS + 10, NOW_MS + 5, NOW_MS + 20):
        produce(client, 5, time_ms=time_ms)
    given = {"bootstrap": tidemark.bootstrap, "subscribe": "t"}

    def planned(*filters: Filter) -> list[OffsetRange]:
        reader = FilteringReader(read_options(given, streaming=False), ("offset",))
        reader.pushFilters(list(filters))
        return list(reader.partitions())

    def since(milliseconds: int) -> Filter:
        moment = datetime.fromtimestamp((NOW_MS + milliseconds) / 1000, UTC)
        return GreaterThanOrEqual(("timestamp",), moment)

    assert planned(GreaterThan(("offset",), 6)) == [OffsetRange(TP, 7, 20)]
    assert planned(EqualTo(("partition",), 1)) == []
    assert planned(since(7)) == [OffsetRange(TP, 5, 20)], "the first of that time, not all before"
    assert planned(since(7), LessThan(("offset",), 8)) == [OffsetRange(TP, 5, 8)]
    assert planned(since(1000)) == []


@pytest.mark.parametrize("side", ["starting", "ending"])
def test_offsets_that_the_log_never_had_are_an_error_or_left_out(
    tidemark: BlockingCluster, client: BlockingClient, side: str
) -> None:
    produce(client, 5)
    places = {f"{side}Offsets": '{"t": {"0": 9}}'}
    with pytest.raises(DataLoss, match=r"t-0 ends at 5, .* 9 .* from 0 to 5 .*failOnDataLoss"):
        batch_reader(tidemark, **places).partitions()
    ranges = batch_reader(tidemark, **places, failOnDataLoss="false").partitions()
    assert ranges == ([] if side == "starting" else [OffsetRange(TP, 0, 5)])


def test_brokers_that_do_not_answer_are_an_error_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        bootstrap = f"127.0.0.1:{nobody.getsockname()[1]}"
    given = {"bootstrap": bootstrap, "subscribe": "t", "kafka.default.api.timeout.ms": "100"}
    reader = BatchReader(read_options(given, streaming=False), ("offset",))
    with pytest.raises(CannotReach, match=f"{bootstrap}.* for 0.1 s; see that the brokers run"):
        reader.partitions()


def test_committed_transactions_are_read_and_aborted_ones_are_not(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    producer = Producer({"bootstrap.servers": tidemark.bootstrap, "transactional.id": "spark"})
    producer.init_transactions(20)
    for turn, is_committed in enumerate((True, False, True)):
        producer.begin_transaction()
        for number in range(3):
            producer.produce("t", b"%d-%d" % (turn, number))
        producer.flush(20)
        (producer.commit_transaction if is_committed else producer.abort_transaction)(20)
    producer.begin_transaction()
    producer.produce("t", b"open")
    producer.flush(20)

    def read(**options: str) -> list[bytes]:
        reader = batch_reader(tidemark, **options)
        partitions = reader.partitions()
        return [
            value
            for partition in partitions
            for batch in reader.read(partition)
            for value in batch["value"].to_pylist()
        ]

    committed = [b"%d-%d" % (turn, number) for turn in (0, 2) for number in range(3)]
    assert read(**{"kafka.isolation.level": "read_committed"}) == committed
    everything = read()
    assert len(everything) == 10
    assert everything[-1] == b"open"
    producer.abort_transaction(20)
    assert read(**{"kafka.isolation.level": "read_committed"}) == committed


def test_the_ends_that_a_stream_goes_by_are_asked_for_now_and_then(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    given = {"bootstrap": tidemark.bootstrap, "subscribe": "t", "offsetCacheMs": "60000"}
    with Driver(read_options(given, streaming=True)) as driver:
        assert driver.recent_ends() == {TP: 0}
        produce(client, 3)
        assert driver.recent_ends() == {TP: 0}, "Spark asks ninety times a second"
        assert driver.ends_now() == {TP: 3}
        assert driver.recent_ends() == {TP: 3}


def test_a_stream_goes_on_when_the_broker_was_restarted(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    given = {"bootstrap": tidemark.bootstrap, "subscribe": "t", "offsetCacheMs": "1"}
    stream = StreamReader(read_options(given, streaming=True), ("offset",))
    start = stream.initialOffset()
    try:
        tidemark.restart()
        produce(client, 4)
        end = stream.latestOffset(start, ReadAllAvailable())
        assert end["t"] == {"0": 4}
        (partition,) = stream.partitions(start, end)
        assert offsets(stream, partition) == [0, 1, 2, 3]
    finally:
        stream.stop()
