"""The source and the sink against brokers that are not ours: librdkafka's mock cluster."""

import pyarrow as pa
from confluent_kafka import Producer

from tidemark.client.spark.batch import BatchReader
from tidemark.client.spark.options import read_options
from tidemark.client.spark.sink import Written, write_rows
from tidemark.client.spark.sink_options import read_sink_options

COUNT = 1000


def test_a_topic_of_other_brokers_is_written_and_read() -> None:
    mock = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "", "log_level": 0})
    brokers = mock.list_topics("words", timeout=5).brokers.values()  # the topic is made by asking
    bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    values = [f"{number}" for number in range(COUNT)]
    rows = pa.record_batch({"key": values, "value": values})
    sink = read_sink_options({"kafka.bootstrap.servers": bootstrap, "topic": "words"})
    assert write_rows(sink, iter([rows])) == Written(COUNT)
    source = read_options(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": "words"}, streaming=False
    )
    reader = BatchReader(source, ("partition", "value"))
    ranges = reader.partitions()
    assert len(ranges) == 4
    batches = [batch for each in ranges for batch in reader.read(each)]
    assert sorted(int(each) for batch in batches for each in batch["value"].to_pylist()) == [
        *range(COUNT)
    ]
