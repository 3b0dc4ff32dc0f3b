"""The suites: what is run of each, what does not apply to Tidemark, and what is known to fail."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.clients.peers.librdkafka import LibrdkafkaSuite
from tests.clients.peers.pytest_suite import PytestSuite

_NO_TLS: Final = (
    "the tests are run against a listener without TLS; ours are in `tests/clients/test_tls.py`"
)
_OWN_BROKER: Final = "the test starts a broker of its own, with SASL"

COMMON_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        # Some of them make ACLs, and all have to be allowed to do so.
        "authorizer.class.name": "StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
"""What the suites expect of a broker."""

SUITES: Final[Mapping[str, PytestSuite | LibrdkafkaSuite]] = MappingProxyType(
    {
        "kafka-python": PytestSuite(
            arguments=(
                "test/integration",
                "--timeout=180",
                "--timeout-method=signal",
                "-o",
                "addopts=",
            ),
            plugin="for_kafka_python",
            settings={"node.id": "0", "group.min.session.timeout.ms": "1000"},
            environment={
                "KAFKA_URI": "kafka://{host}:{port}",
                "KAFKA_VERSION": "4.3.0",
                "KAFKA_ROOT": ".",
            },
            not_applicable={
                "test_ssl_integration*": _NO_TLS,
                "*test_kafka_version_infer": "it tells Kafka's releases apart by the APIs that "
                "they list",
                "*test_describe_configs_broker_resource*": "it expects a broker whose file has "
                "advertised.listeners, and this one has none",
            },
        ),
        "aiokafka": PytestSuite(
            arguments=(
                "tests/test_producer.py",
                "tests/test_consumer.py",
                "tests/test_coordinator.py",
                "tests/test_fetcher.py",
                "tests/test_admin.py",
                "tests/test_client.py",
                "tests/test_pep492.py",
                "tests/test_transactional_producer.py",
                "tests/test_transactional_consumer.py",
                "--docker-image=byo:2.13_2.8.1",
                "-p",
                "no:asyncio",
                "-o",
                "addopts=",
                "-W",
                "ignore",
                "--timeout=90",
            ),
            plugin="for_aiokafka",
            environment={"AIOKAFKA_NO_EXTENSIONS": "1"},
            settings={"num.partitions": "2"},
            not_applicable={
                "*ssl*": _NO_TLS,
            },
            known={
                "*test_consumer_seek_to_end": "a record written with acks=1 is acknowledged a "
                "moment before it is committed, and only then is the end behind it"
            },
        ),
        "confluent-kafka-python": PytestSuite(
            arguments=(
                "tests/integration/admin",
                "tests/integration/consumer",
                "tests/integration/producer",
                "--import-mode=importlib",
                "-o",
                "addopts=",
                "--timeout=120",
            ),
            plugin="for_confluent",
            environment={"BROKERS": "{host}:{port}"},
            not_applicable={
                "*test_describe_operations*": _OWN_BROKER,
            },
            known={
                "*test_incremental_alter_configs": "it expects min.insync.replicas to be set for "
                "all brokers, as Kafka 4.1 does by itself; all else that it compares is equal",
            },
        ),
        "librdkafka": LibrdkafkaSuite(),
    }
)
