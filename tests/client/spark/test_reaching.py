"""What a query does where no broker can be reached when it begins."""

import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tidemark.client.blocking import open_client
from tidemark.client.spark.driver import Driver
from tidemark.client.spark.options import SourceOptions, read_options
from tidemark.client.spark.sink import write_rows
from tidemark.client.spark.sink_options import read_sink_options
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import TopicPartition
from tidemark.testing import BlockingCluster, open_blocking_cluster


def source(cluster: BlockingCluster, **options: str) -> SourceOptions:
    given = {"bootstrap": cluster.bootstrap, "subscribe": "t", **options}
    return read_options(given, streaming=False)


def test_a_query_begins_while_the_only_broker_is_restarting(tidemark: BlockingCluster) -> None:
    with open_client(tidemark.bootstrap) as client:
        client.run(client.admin.create_topic, "t", partitions=1)
    rows = pa.RecordBatch.from_pydict({"value": [b"v"] * 3})
    sink = read_sink_options({"bootstrap": tidemark.bootstrap, "topic": "t"})
    tidemark.stop()
    with ThreadPoolExecutor() as threads, Driver(source(tidemark)) as driver:
        planned = threads.submit(driver.partitions)
        written = threads.submit(write_rows, sink, iter([rows]))
        time.sleep(0.3)
        assert not planned.done()
        assert not written.done()
        tidemark.start()
        assert planned.result(20) == [TopicPartition("t", 0)]
        assert written.result(20).rows == 3


def test_a_wrong_password_is_tried_once() -> None:
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "ada",
        "kafka.sasl.password": "wrong",
    }
    with (
        open_blocking_cluster(settings={"users": "ada:right"}) as cluster,
        Driver(source(cluster, **options)) as driver,
    ):
        began = time.monotonic()
        with pytest.raises(RequestError, match="SASL_AUTHENTICATION_FAILED"):
            driver.partitions()
        assert time.monotonic() - began < 30
