"""A broker that asks who one is: the options go from the driver to the tasks."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.client.blocking import open_client
from tidemark.client.columns import write_topic
from tidemark.client.security.sasl import Sasl
from tidemark.client.security.tls import UntrustedBroker
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.batch import BatchReader
from tidemark.client.spark.options import read_options
from tidemark.testing import BlockingCluster, open_blocking_cluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)

LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="{}";'
)


@pytest.fixture(scope="module")
def secured() -> Iterator[BlockingCluster]:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": "ada:secret"}
    with open_blocking_cluster(settings=settings) as cluster:
        yield cluster


def test_a_broker_that_asks_for_a_password_is_read(
    spark: SparkSession, secured: BlockingCluster
) -> None:
    ada = ClientSettings(sasl=Sasl(mechanism="PLAIN", username="ada", password="secret"))
    with open_client(secured.bootstrap, settings=ada) as client:
        client.run(client.admin.create_topic, "words")
    rows = {"value": ["a", "b"]}
    write_topic(secured.bootstrap, "words", [pa.record_batch(rows)], settings=ada)
    reader = (
        spark.read.format("tidemark")
        .option("kafka.bootstrap.servers", secured.bootstrap)
        .option("kafka.security.protocol", "SASL_PLAINTEXT")
        .option("kafka.sasl.mechanism", "PLAIN")
        .option("subscribe", "words")
    )
    words = reader.option("kafka.sasl.jaas.config", LOGIN.format("secret")).load()
    assert sorted(row.value for row in words.collect()) == [b"a", b"b"]
    wrong = reader.option("kafka.sasl.jaas.config", LOGIN.format("guessed")).load()
    with pytest.raises((AnalysisException, PySparkException), match="SASL_AUTHENTICATION_FAILED"):
        wrong.collect()


def test_a_broker_that_is_not_trusted_is_not_called_out_of_reach() -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.certificate.location": str(CERTIFICATES / "localhost.pem"),
    }
    with open_blocking_cluster(settings=settings) as cluster:
        given = {
            "bootstrap": cluster.bootstrap,
            "subscribe": "words",
            "kafka.security.protocol": "SSL",
            "kafka.ssl.ca.location": str(CERTIFICATES / "stranger.pem"),
        }
        reader = BatchReader(read_options(given, streaming=False), ("offset",))
        with pytest.raises(UntrustedBroker, match=r"not trusted.*\(ssl\.ca\.location\)$"):
            reader.partitions()
